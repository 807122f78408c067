// Reads manifests as a Kubernetes API server does: into the published types, with unknown and repeated fields
// refused. Renders charts first, as Helm does. Writes the documents of ConfigMaps to a folder, so that they can be
// checked, and the objects as they were read to another one, for the published schemas.
//
//	kubernetes -documents FOLDER -objects FOLDER [-values FILE]... PATH...   manifests, folders of them, or charts
package main

import (
	"bufio"
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sort"
	"strings"

	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/kubernetes/scheme"
)

type names []string

func (n *names) String() string     { return strings.Join(*n, ",") }
func (n *names) Set(v string) error { *n = append(*n, v); return nil }

func main() {
	documents := flag.String("documents", "", "folder for the documents of ConfigMaps")
	objects := flag.String("objects", "", "folder for the objects, a file each")
	var values names
	flag.Var(&values, "values", "values of charts")
	flag.Parse()
	count := 0
	for _, path := range flag.Args() {
		texts, err := read(path, values)
		if err != nil {
			fail(path, err)
		}
		for name, text := range texts {
			seen, err := check(name, text, *documents, *objects)
			if err != nil {
				fail(name, err)
			}
			count += seen
		}
	}
	if count == 0 {
		fail("nothing", errors.New("no object was read"))
	}
	fmt.Printf("%d objects are as Kubernetes has them\n", count)
}

func fail(name string, err error) {
	fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
	os.Exit(1)
}

// read gives the manifests of a file, a folder or a chart.
func read(path string, files names) (map[string][]byte, error) {
	if _, err := os.Stat(filepath.Join(path, "Chart.yaml")); err == nil {
		return render(path, files)
	}
	texts := map[string][]byte{}
	paths := []string{path}
	if known, err := os.Stat(path); err == nil && known.IsDir() {
		if paths, err = filepath.Glob(filepath.Join(path, "*.yaml")); err != nil {
			return nil, err
		}
	}
	sort.Strings(paths)
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		texts[path] = text
	}
	return texts, nil
}

func render(path string, files names) (map[string][]byte, error) {
	chart, err := loader.Load(path)
	if err != nil {
		return nil, err
	}
	values := chartutil.Values{}
	for _, file := range files {
		own, err := chartutil.ReadValuesFile(file)
		if err != nil {
			return nil, err
		}
		values = chartutil.CoalesceTables(own, values)
	}
	options := chartutil.ReleaseOptions{Name: "test", Namespace: "waf", IsInstall: true, Revision: 1}
	all, err := chartutil.ToRenderValues(chart, values, options, chartutil.DefaultCapabilities)
	if err != nil {
		return nil, err
	}
	rendered, err := engine.Engine{Strict: true}.Render(chart, all)
	if err != nil {
		return nil, err
	}
	texts := map[string][]byte{}
	for name, text := range rendered {
		if strings.HasSuffix(name, ".yaml") && strings.TrimSpace(text) != "" {
			texts[name] = []byte(text)
		}
	}
	return texts, nil
}

// check decodes each object of a text, and gives their number.
func check(name string, text []byte, documents, objects string) (int, error) {
	decoder := serializer.NewCodecFactory(scheme.Scheme, serializer.EnableStrict).UniversalDeserializer()
	reader := yaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(text)))
	for count := 0; ; {
		document, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return count, nil
		}
		if err != nil {
			return count, err
		}
		if len(bytes.TrimSpace(document)) == 0 {
			continue
		}
		object, _, err := decoder.Decode(document, nil, nil)
		if err != nil {
			return count, fmt.Errorf("object %d: %w", count+1, err)
		}
		if err := inspect(name, object, documents); err != nil {
			return count, fmt.Errorf("object %d: %w", count+1, err)
		}
		if objects != "" {
			file := fmt.Sprintf("%s-%d.yaml", flat(name), count+1)
			if err := os.WriteFile(filepath.Join(objects, file), document, 0o644); err != nil {
				return count, err
			}
		}
		count++
	}
}

// inspect says what types alone do not: how containers have to run, and where documents are.
func inspect(name string, object runtime.Object, documents string) error {
	switch object := object.(type) {
	case *corev1.ConfigMap:
		for key, text := range object.Data {
			if !strings.HasSuffix(key, ".toml") || documents == "" {
				continue
			}
			file := flat(name) + "-" + object.Name + "-" + key
			if err := os.WriteFile(filepath.Join(documents, file), []byte(text), 0o644); err != nil {
				return err
			}
		}
	case *appsv1.Deployment:
		pod := object.Spec.Template.Spec
		for _, container := range pod.Containers {
			if container.Name == "portcullis" {
				return safe(pod, container)
			}
		}
		return errors.New("no container is called portcullis")
	}
	return nil
}

// flat makes a path a part of a file name.
func flat(path string) string { return strings.NewReplacer("/", "-", ".", "-").Replace(path) }

func safe(pod corev1.PodSpec, container corev1.Container) error {
	security := container.SecurityContext
	switch {
	case pod.SecurityContext == nil || pod.SecurityContext.RunAsNonRoot == nil || !*pod.SecurityContext.RunAsNonRoot:
		return errors.New("runAsNonRoot is not set")
	case security == nil || security.ReadOnlyRootFilesystem == nil || !*security.ReadOnlyRootFilesystem:
		return errors.New("the root file system can be written to")
	case security.AllowPrivilegeEscalation == nil || *security.AllowPrivilegeEscalation:
		return errors.New("privileges can be gained")
	case container.ReadinessProbe == nil || container.LivenessProbe == nil || container.StartupProbe == nil:
		return errors.New("a probe is missing")
	case pod.TerminationGracePeriodSeconds == nil || *pod.TerminationGracePeriodSeconds < 50:
		return errors.New("the grace period is shorter than preStop (10 s), drain (30 s) and writing logs (5 s)")
	}
	return nil
}

// Caddy with the modules that the example of forward authentication needs, for the tests. Caddy's own program has all
// modules, and takes minutes to build.
package main

import (
	caddycmd "github.com/caddyserver/caddy/v2/cmd"

	_ "github.com/caddyserver/caddy/v2/caddyconfig/httpcaddyfile"
	_ "github.com/caddyserver/caddy/v2/modules/caddyhttp/reverseproxy/forwardauth"
)

func main() {
	caddycmd.Main()
}

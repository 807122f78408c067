import jakarta.servlet.http.HttpServlet;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import org.apache.catalina.Context;
import org.apache.catalina.startup.Tomcat;
import org.apache.tomcat.util.buf.EncodedSolidusHandling;

/** Tomcat with a servlet for each area. "lenient" takes backslashes and coded slashes, too. */
public class Areas {
    static HttpServlet area(int status) {
        return new HttpServlet() {
            @Override
            protected void service(HttpServletRequest request, HttpServletResponse response) {
                response.setStatus(status);
            }
        };
    }

    public static void main(String[] arguments) throws Exception {
        Tomcat tomcat = new Tomcat();
        tomcat.setBaseDir(arguments[0]);
        tomcat.setHostname("127.0.0.1");
        tomcat.setPort(PORT);
        tomcat.getConnector().setProperty("address", "127.0.0.1");
        tomcat.getConnector().setProperty("relaxedPathChars", "[]{}|\\");
        if (arguments.length > 1) {
            tomcat.getConnector().setAllowBackslash(true);
            tomcat.getConnector().setEncodedSolidusHandling(EncodedSolidusHandling.DECODE.getValue());
        }
        Context context = tomcat.addContext("", arguments[0]);
        String[] patterns = {"/static/*", "/admin/*", "/"};
        int[] statuses = {410, 451, 409};
        for (int i = 0; i < 3; i++) {
            Tomcat.addServlet(context, "area" + i, area(statuses[i]));
            context.addServletMappingDecoded(patterns[i], "area" + i);
        }
        tomcat.start();
        tomcat.getServer().await();
    }
}

import com.sun.net.httpserver.HttpServer;
import java.net.InetSocketAddress;
import java.security.MessageDigest;
import java.util.*;
import javax.crypto.Mac;
import javax.crypto.spec.SecretKeySpec;

public class Receiver {
  public static void main(String[] args) throws Exception {
    var mac = Mac.getInstance("HmacSHA256");
    mac.init(new SecretKeySpec(Base64.getDecoder().decode(System.getenv("WEBHOOK_SECRET").replaceFirst("^whsec_", "")), "HmacSHA256"));
    var seen = new HashSet<String>(); // in your database, in the transaction of the changes that the event causes
    var server = HttpServer.create(new InetSocketAddress("127.0.0.1", Integer.parseInt(System.getenv("PORT"))), 0);
    server.createContext("/", exchange -> {
      var body = exchange.getRequestBody().readAllBytes(); // the received bytes, not parsed
      var headers = exchange.getRequestHeaders();
      String id = headers.getFirst("webhook-id"), timestamp = headers.getFirst("webhook-timestamp");
      mac.update((id + "." + timestamp + ".").getBytes());
      var expected = "v1," + Base64.getEncoder().encodeToString(mac.doFinal(body));
      var signed = false;
      for (var given : headers.getFirst("webhook-signature").split(" ")) signed |= MessageDigest.isEqual(expected.getBytes(), given.getBytes());
      var good = signed && Math.abs(System.currentTimeMillis() / 1000 - Long.parseLong(timestamp)) < 300;
      if (good && seen.add(id)) System.out.println(id + " " + new String(body, "UTF-8")); // read it with your JSON library
      exchange.sendResponseHeaders(good ? 204 : 401, -1);
    });
    server.start(); // without an executor, requests are handled sequentially
  }
}

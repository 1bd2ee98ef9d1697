import com.fasterxml.jackson.databind.ObjectMapper;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.*;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.serialization.StringDeserializer;

/** Prints each record of TOPICS as a line of JSON, as Kafka's own client reads them, until it is killed. */
class Read {
  public static void main(String[] args) throws Exception {
    var env = System.getenv();
    var settings = Map.<String, Object>of("bootstrap.servers", env.get("KAFKA_BROKERS"), "group.id", env.get("GROUP_ID"),
        "auto.offset.reset", "earliest", "isolation.level", "read_committed");
    var json = new ObjectMapper();
    try (var consumer = new KafkaConsumer<>(settings, new StringDeserializer(), new StringDeserializer())) {
      consumer.subscribe(List.of(env.get("TOPICS").split(",")));
      while (true) {
        for (var record : consumer.poll(Duration.ofMillis(200))) {
          var headers = new TreeMap<String, String>();
          for (var header : record.headers()) headers.put(header.key(), new String(header.value(), StandardCharsets.UTF_8));
          var place = record.topic() + "/" + record.partition() + "/" + record.offset();
          System.out.println(json.writeValueAsString(Map.of("place", place, "key", record.key(), "headers", headers, "value", record.value())));
        }
      }
    }
  }
}

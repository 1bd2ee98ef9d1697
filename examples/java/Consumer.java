import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.time.Duration;
import java.util.*;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.StringDeserializer;

/** Prints the bank's completed transactions, each once and in order per account, and reports missing ones. */
public class Consumer {
  public static void main(String[] args) throws Exception {
    var env = System.getenv();
    var prefix = env.getOrDefault("TOPIC_PREFIX", "");
    var settings = Map.<String, Object>of("bootstrap.servers", env.getOrDefault("KAFKA_BROKERS", "127.0.0.1:9092"), "group.id", prefix + "java-example",
        "auto.offset.reset", "earliest", "enable.auto.commit", "false");
    var lastSequences = new HashMap<String, Long>();
    var json = new ObjectMapper();
    try (var consumer = new KafkaConsumer<>(settings, new StringDeserializer(), new StringDeserializer())) {
      consumer.subscribe(List.of(prefix + "transactions"), new ConsumerRebalanceListener() {
        public void onPartitionsRevoked(Collection<TopicPartition> partitions) {}

        // Another member may have read further meanwhile, so the state of the accounts is outdated.
        public void onPartitionsAssigned(Collection<TopicPartition> partitions) {
          lastSequences.clear();
        }
      });
      System.err.println("reading ...");
      while (true) {
        for (var message : consumer.poll(Duration.ofSeconds(1))) {
          var headers = message.headers();
          var type = headers.lastHeader("ce_type");
          if (type == null || !new String(type.value()).equals("corebanking.transaction.completed.v1")) continue;
          JsonNode event;
          try {
            event = json.readTree(message.value());
          } catch (JsonProcessingException notJson) {
            // Where it is says enough to read it again later. The others must not wait for it.
            System.out.printf("%s/%d/%d cannot be read%n", message.topic(), message.partition(), message.offset());
            continue;
          }
          if (!event.path("sequence").canConvertToLong()) continue;
          var sequence = event.get("sequence").asLong();
          var last = lastSequences.getOrDefault(message.key(), sequence - 1);
          if (sequence <= last) continue; // delivered again
          if (sequence > last + 1) System.out.printf("%s: %d to %d are missing%n", message.key(), last + 1, sequence - 1);
          System.out.printf("%s %d %s %s [%s]%n", message.key(), sequence, event.at("/transaction/transaction_type").asText(), event.path("balance_after").asText(),
              new String(headers.lastHeader("ce_id").value()));
          lastSequences.put(message.key(), sequence);
        }
        consumer.commitSync(); // only after processing, so that a crash causes redelivery
      }
    }
  }
}

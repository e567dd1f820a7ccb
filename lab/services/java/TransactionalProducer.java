import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.internals.RecordHeader;

/**
 * Apache Kafka's own transactional producer, told by JSON lines on standard input what to do, one answer line each.
 *
 * <p>Started with bootstrap servers and a transactional id. At transaction.version=2 this client gets a new producer
 * epoch with every transaction (KIP-890), which librdkafka does not. Ends with its standard input.
 */
public final class TransactionalProducer {
    private static final long TIMEOUT_SECONDS = 30;
    private static final ObjectMapper JSON = new ObjectMapper();

    private TransactionalProducer() {}

    public static void main(String[] arguments) throws Exception {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", arguments[0]);
        settings.put("transactional.id", arguments[1]);
        settings.put("client.id", arguments[1]);
        settings.put("linger.ms", "0");
        settings.put("enable.metrics.push", "false");
        settings.put("key.serializer", "org.apache.kafka.common.serialization.StringSerializer");
        settings.put("value.serializer", "org.apache.kafka.common.serialization.StringSerializer");
        BufferedReader commands = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        try (KafkaProducer<String, String> producer = new KafkaProducer<>(settings)) {
            producer.initTransactions();
            answer(JSON.createObjectNode().put("done", "open"));
            for (String line = commands.readLine(); line != null; line = commands.readLine()) {
                answer(perform(producer, JSON.readTree(line)));
            }
        }
    }

    private static ObjectNode perform(KafkaProducer<String, String> producer, JsonNode command) throws Exception {
        String action = command.get("do").asText();
        ObjectNode answer = JSON.createObjectNode().put("done", action);
        switch (action) {
            case "begin" -> producer.beginTransaction();
            case "commit" -> producer.commitTransaction();
            case "abort" -> producer.abortTransaction();
            case "send" -> answer.put("kafka_offset", send(producer, command).offset());
            default -> throw new IllegalArgumentException("unknown command: " + action);
        }
        return answer;
    }

    private static RecordMetadata send(KafkaProducer<String, String> producer, JsonNode command) throws Exception {
        List<Header> headers = new ArrayList<>();
        for (Map.Entry<String, JsonNode> header : command.get("headers").properties()) {
            headers.add(new RecordHeader(header.getKey(), header.getValue().asText().getBytes(StandardCharsets.UTF_8)));
        }
        ProducerRecord<String, String> sent = new ProducerRecord<>(
                command.get("topic").asText(),
                command.get("partition").asInt(),
                command.get("key").asText(),
                command.get("value").asText(),
                headers);
        return producer.send(sent).get(TIMEOUT_SECONDS, TimeUnit.SECONDS);
    }

    private static void answer(ObjectNode node) {
        System.out.println(node);
        System.out.flush();
    }
}

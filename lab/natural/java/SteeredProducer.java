import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.KafkaException;

/**
 * Kafka's own producer, of whatever version stands on the class path, told by JSON lines on standard input what to do,
 * one answer line each. It does not wait for what it has sent, and it answers what failed instead of ending.
 *
 * <p>Started with the producer's settings as name=value; with a transactional.id it is transactional.
 */
public final class SteeredProducer {
    private static final long TIMEOUT_SECONDS = 30;
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final List<Future<RecordMetadata>> SENT = new ArrayList<>();

    private SteeredProducer() {}

    public static void main(String[] arguments) throws Exception {
        Properties settings = new Properties();
        settings.put("key.serializer", "org.apache.kafka.common.serialization.StringSerializer");
        settings.put("value.serializer", "org.apache.kafka.common.serialization.StringSerializer");
        for (String argument : arguments) {
            String[] setting = argument.split("=", 2);
            settings.put(setting[0], setting[1]);
        }
        BufferedReader commands = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        try (KafkaProducer<String, String> producer = new KafkaProducer<>(settings)) {
            if (settings.containsKey("transactional.id")) {
                producer.initTransactions();
            }
            answer(JSON.createObjectNode().put("done", "open"));
            for (String line = commands.readLine(); line != null; line = commands.readLine()) {
                answer(perform(producer, JSON.readTree(line)));
            }
        }
    }

    private static ObjectNode perform(KafkaProducer<String, String> producer, JsonNode command) throws Exception {
        String action = command.get("do").asText();
        ObjectNode answer = JSON.createObjectNode().put("done", action);
        try {
            switch (action) {
                case "begin" -> producer.beginTransaction();
                case "commit" -> producer.commitTransaction();
                case "abort" -> producer.abortTransaction();
                case "send" -> {
                    SENT.add(producer.send(record(command)));
                    answer.put("number", SENT.size() - 1);
                }
                case "outcome" -> answer.put("kafka_offset", offsetOf(command.get("number").asInt()));
                default -> throw new IllegalArgumentException("unknown command: " + action);
            }
        } catch (KafkaException failed) {
            answer.put("failed", failed.getClass().getSimpleName()).put("why", failed.getMessage());
        } catch (ExecutionException failed) {
            answer.put("failed", failed.getCause().getClass().getSimpleName()).put("why", failed.getMessage());
        }
        return answer;
    }

    private static long offsetOf(int number) throws Exception {
        return SENT.get(number).get(TIMEOUT_SECONDS, TimeUnit.SECONDS).offset();
    }

    private static ProducerRecord<String, String> record(JsonNode command) {
        ProducerRecord<String, String> record = new ProducerRecord<>(
                command.get("topic").asText(),
                command.get("partition").asInt(),
                command.get("timestamp").asLong(),
                command.get("key").asText(),
                command.get("value").asText());
        for (Iterator<Map.Entry<String, JsonNode>> left = command.get("headers").fields(); left.hasNext(); ) {
            Map.Entry<String, JsonNode> header = left.next();
            record.headers().add(header.getKey(), header.getValue().asText().getBytes(StandardCharsets.UTF_8));
        }
        return record;
    }

    private static void answer(ObjectNode node) {
        System.out.println(node);
        System.out.flush();
    }
}

import com.fasterxml.jackson.core.JsonFactory;
import com.fasterxml.jackson.core.JsonParser;
import com.fasterxml.jackson.core.JsonToken;
import java.net.URI;
import java.nio.file.Files;
import java.nio.file.Path;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.ResultSet;
import java.sql.Statement;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.PartitionInfo;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/**
 * The join without any framework: two threads read the topic's partitions, two read halves of the table, one map joins.
 *
 * <p>Arguments: servers, topic, environment variable with the ledger's address, table, times, file of the result. Copies
 * of a key are paired with equal ones first. It counts, keeps no evidence and stores nothing.
 */
public final class BareJoin {
    private static final int READERS = 2;
    private static final int FETCH_ROWS = 10_000;

    /** One event, or one row; {@code next}: another of the same key. */
    private static final class Item {
        final String key;
        final String payment;
        final String leg;
        final long amountMinor;
        final String currency;
        Item next;

        Item(String key, String payment, String leg, long amountMinor, String currency) {
            this.key = key;
            this.payment = payment;
            this.leg = leg;
            this.amountMinor = amountMinor;
            this.currency = currency;
        }

        boolean equalsIn(Item other) {
            return amountMinor == other.amountMinor && payment.equals(other.payment) && leg.equals(other.leg)
                    && currency.equals(other.currency);
        }
    }

    public static void main(String[] given) throws Exception {
        String servers = given[0];
        String topic = given[1];
        URI ledger = new URI(System.getenv(given[2]));
        String table = given[3];
        int times = Integer.parseInt(given[4]);
        ExecutorService readers = Executors.newFixedThreadPool(2 * READERS);
        List<String> seconds = new ArrayList<>();
        String answer = "{}";
        try {
            for (int time = 0; time < times; time++) {
                long started = System.nanoTime();
                answer = compare(readers, servers, topic, ledger, table);
                seconds.add(String.format(Locale.ROOT, "%.4f", (System.nanoTime() - started) / 1e9));
            }
        } finally {
            readers.shutdownNow();
        }
        Files.writeString(Path.of(given[5]), "{\"seconds\": " + seconds + ", \"answer\": " + answer + "}");
    }

    private static String compare(ExecutorService readers, String servers, String topic, URI ledger, String table)
            throws Exception {
        List<Future<List<Item>>> events = new ArrayList<>();
        List<Future<List<Item>>> rows = new ArrayList<>();
        for (String query : halves(ledger, table)) {
            rows.add(readers.submit(() -> readRows(ledger, query)));
        }
        for (int reader = 0; reader < READERS; reader++) {
            int number = reader;
            Callable<List<Item>> reading = () -> readEvents(servers, topic, number);
            events.add(readers.submit(reading));
        }
        Map<String, Item> byKey = new HashMap<>();
        long missingInTopic = 0;
        for (Future<List<Item>> some : rows) {
            for (Item row : some.get()) {
                row.next = byKey.put(row.key, row);
                missingInTopic++;
            }
        }
        List<Item> unpaired = new ArrayList<>();
        for (Future<List<Item>> some : events) {
            for (Item event : some.get()) {
                if (takeEqual(byKey, event)) {
                    missingInTopic--;
                } else {
                    unpaired.add(event);
                }
            }
        }
        long different = 0;
        for (Item event : unpaired) {
            if (takeAny(byKey, event.key)) {
                missingInTopic--;
                different++;
            }
        }
        return "{\"missing_in_ledger\": " + (unpaired.size() - different) + ", \"missing_in_topic\": " + missingInTopic
                + ", \"different\": " + different + "}";
    }

    private static boolean takeEqual(Map<String, Item> byKey, Item event) {
        Item first = byKey.get(event.key);
        Item before = null;
        for (Item row = first; row != null; before = row, row = row.next) {
            if (row.equalsIn(event)) {
                if (before != null) {
                    before.next = row.next;
                } else {
                    takeAny(byKey, event.key);
                }
                return true;
            }
        }
        return false;
    }

    private static boolean takeAny(Map<String, Item> byKey, String key) {
        Item first = byKey.remove(key);
        if (first != null && first.next != null) {
            byKey.put(key, first.next);
        }
        return first != null;
    }

    private static List<Item> readEvents(String servers, String topic, int number) throws Exception {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", servers);
        settings.put("isolation.level", "read_committed");
        settings.put("enable.auto.commit", "false");
        settings.put("max.poll.records", "50000");
        settings.put("max.partition.fetch.bytes", "16777216");
        settings.put("receive.buffer.bytes", "1048576");
        ByteArrayDeserializer bytes = new ByteArrayDeserializer();
        List<Item> events = new ArrayList<>();
        JsonFactory json = new JsonFactory();
        try (KafkaConsumer<byte[], byte[]> consumer = new KafkaConsumer<>(settings, bytes, bytes)) {
            List<TopicPartition> mine = new ArrayList<>();
            for (PartitionInfo part : consumer.partitionsFor(topic)) {
                if (part.partition() % READERS == number) {
                    mine.add(new TopicPartition(topic, part.partition()));
                }
            }
            if (mine.isEmpty()) {
                return events;
            }
            consumer.assign(mine);
            consumer.seekToBeginning(mine);
            Map<TopicPartition, Long> ends = consumer.endOffsets(mine);
            while (mine.stream().anyMatch(part -> consumer.position(part) < ends.get(part))) {
                for (ConsumerRecord<byte[], byte[]> record : consumer.poll(Duration.ofSeconds(1))) {
                    events.add(event(json, record.value()));
                }
            }
        }
        return events;
    }

    private static Item event(JsonFactory json, byte[] value) throws Exception {
        String key = null;
        String payment = null;
        String leg = null;
        String currency = null;
        long amountMinor = 0;
        try (JsonParser parser = json.createParser(value)) {
            parser.nextToken();
            while (parser.nextToken() == JsonToken.FIELD_NAME) {
                String name = parser.currentName();
                parser.nextToken();
                switch (name) {
                    case "event_id" -> key = parser.getText();
                    case "payment_id" -> payment = parser.getText();
                    case "leg" -> leg = parser.getText();
                    case "amount_minor" -> amountMinor = parser.getLongValue();
                    case "currency" -> currency = parser.getText();
                    default -> parser.skipChildren();
                }
            }
        }
        return new Item(key, payment, leg, amountMinor, currency);
    }

    private static Connection connect(URI ledger) throws Exception {
        String[] account = ledger.getUserInfo().split(":", 2);
        String url = "jdbc:postgresql://" + ledger.getHost() + ":" + ledger.getPort() + ledger.getPath();
        Properties settings = new Properties();
        settings.put("user", account[0]);
        settings.put("password", account[1]);
        Connection connection = DriverManager.getConnection(url, settings);
        connection.setAutoCommit(false);
        return connection;
    }

    private static List<String> halves(URI ledger, String table) throws Exception {
        String size = "SELECT pg_relation_size('" + table + "') / current_setting('block_size')::int / 2";
        try (Connection connection = connect(ledger);
                Statement statement = connection.createStatement();
                ResultSet answer = statement.executeQuery(size)) {
            answer.next();
            String query = "SELECT event_id::text, payment_id, leg, amount_minor, currency FROM " + table + " WHERE ctid ";
            String middle = " '(" + answer.getLong(1) + ",0)'::tid";
            return List.of(query + "<" + middle, query + ">=" + middle);
        }
    }

    private static List<Item> readRows(URI ledger, String query) throws Exception {
        List<Item> rows = new ArrayList<>();
        try (Connection connection = connect(ledger);
                Statement statement = connection.createStatement()) {
            statement.setFetchSize(FETCH_ROWS);
            try (ResultSet found = statement.executeQuery(query)) {
                while (found.next()) {
                    rows.add(new Item(found.getString(1), found.getString(2), found.getString(3), found.getLong(4),
                            found.getString(5)));
                }
            }
        }
        return rows;
    }
}

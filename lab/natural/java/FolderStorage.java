import java.io.IOException;
import java.io.InputStream;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.util.Map;
import java.util.Optional;
import java.util.stream.Stream;
import org.apache.kafka.server.log.remote.storage.LogSegmentData;
import org.apache.kafka.server.log.remote.storage.RemoteLogSegmentMetadata;
import org.apache.kafka.server.log.remote.storage.RemoteLogSegmentMetadata.CustomMetadata;
import org.apache.kafka.server.log.remote.storage.RemoteResourceNotFoundException;
import org.apache.kafka.server.log.remote.storage.RemoteStorageException;
import org.apache.kafka.server.log.remote.storage.RemoteStorageManager;

/**
 * The plugin that Kafka needs for tiered storage: keeps each remote segment as files of one folder.
 *
 * <p>What it gives back is what it was given, byte for byte: which of it is aborted is the broker's affair.
 */
public final class FolderStorage implements RemoteStorageManager {
    private Path folder;

    @Override
    public void configure(Map<String, ?> settings) {
        folder = Path.of(settings.get("folder").toString());
    }

    @Override
    public Optional<CustomMetadata> copyLogSegmentData(RemoteLogSegmentMetadata segment, LogSegmentData data)
            throws RemoteStorageException {
        try {
            Files.createDirectories(folder);
            Files.copy(data.logSegment(), path(segment, "LOG"));
            Files.copy(data.offsetIndex(), path(segment, IndexType.OFFSET.name()));
            Files.copy(data.timeIndex(), path(segment, IndexType.TIMESTAMP.name()));
            Files.copy(data.producerSnapshotIndex(), path(segment, IndexType.PRODUCER_SNAPSHOT.name()));
            if (data.transactionIndex().isPresent()) {
                Files.copy(data.transactionIndex().get(), path(segment, IndexType.TRANSACTION.name()));
            }
            ByteBuffer epochs = data.leaderEpochIndex().duplicate();
            byte[] bytes = new byte[epochs.remaining()];
            epochs.get(bytes);
            Files.write(path(segment, IndexType.LEADER_EPOCH.name()), bytes);
        } catch (IOException failed) {
            throw new RemoteStorageException(failed);
        }
        return Optional.empty();
    }

    @Override
    public InputStream fetchLogSegment(RemoteLogSegmentMetadata segment, int start) throws RemoteStorageException {
        InputStream bytes = open(path(segment, "LOG"));
        try {
            bytes.skipNBytes(start);
        } catch (IOException failed) {
            throw new RemoteStorageException(failed);
        }
        return bytes;
    }

    @Override
    public InputStream fetchLogSegment(RemoteLogSegmentMetadata segment, int start, int end)
            throws RemoteStorageException {
        return fetchLogSegment(segment, start);
    }

    @Override
    public InputStream fetchIndex(RemoteLogSegmentMetadata segment, IndexType type) throws RemoteStorageException {
        return open(path(segment, type.name()));
    }

    @Override
    public void deleteLogSegmentData(RemoteLogSegmentMetadata segment) throws RemoteStorageException {
        String name = segment.remoteLogSegmentId().id().toString();
        try (Stream<Path> files = Files.list(folder)) {
            for (Path file : (Iterable<Path>) files.filter(each -> each.getFileName().toString().startsWith(name))::iterator) {
                Files.delete(file);
            }
        } catch (IOException failed) {
            throw new RemoteStorageException(failed);
        }
    }

    @Override
    public void close() {}

    private Path path(RemoteLogSegmentMetadata segment, String part) {
        return folder.resolve(segment.remoteLogSegmentId().id() + "." + part);
    }

    private static InputStream open(Path file) throws RemoteStorageException {
        try {
            return Files.newInputStream(file);
        } catch (NoSuchFileException absent) {
            throw new RemoteResourceNotFoundException(absent);
        } catch (IOException failed) {
            throw new RemoteStorageException(failed);
        }
    }
}

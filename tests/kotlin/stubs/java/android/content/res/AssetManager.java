package android.content.res;

import java.io.IOException;
import java.io.InputStream;
import org.jetbrains.annotations.NotNull;

/** Signatures: https://developer.android.com/reference/android/content/res/AssetManager */
public final class AssetManager implements AutoCloseable {
    @NotNull
    public native InputStream open(@NotNull String fileName) throws IOException;

    @NotNull
    public native AssetFileDescriptor openFd(@NotNull String fileName) throws IOException;

    public native String[] list(@NotNull String path) throws IOException;

    @Override
    public native void close();
}

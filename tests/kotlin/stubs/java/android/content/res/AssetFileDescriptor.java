package android.content.res;

import java.io.Closeable;
import java.io.FileDescriptor;
import java.io.FileInputStream;
import java.io.IOException;

/** Signatures: https://developer.android.com/reference/android/content/res/AssetFileDescriptor */
public class AssetFileDescriptor implements Closeable {
    public native FileInputStream createInputStream() throws IOException;

    public native FileDescriptor getFileDescriptor();

    public native long getStartOffset();

    public native long getDeclaredLength();

    public native long getLength();

    @Override
    public native void close() throws IOException;
}

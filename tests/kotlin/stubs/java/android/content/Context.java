package android.content;

import android.content.res.AssetManager;
import java.io.File;

/** Signatures: https://developer.android.com/reference/android/content/Context */
public abstract class Context {
    public abstract AssetManager getAssets();

    public abstract File getCacheDir();

    public abstract File getFilesDir();
}

package android.app;

import android.content.Context;
import android.content.res.AssetManager;
import android.os.Bundle;
import android.view.View;
import java.io.File;
import org.jetbrains.annotations.Nullable;

/** Signatures: https://developer.android.com/reference/android/app/Activity */
public class Activity extends Context {
    @Override
    public native AssetManager getAssets();

    @Override
    public native File getCacheDir();

    @Override
    public native File getFilesDir();

    protected native void onCreate(@Nullable Bundle savedInstanceState);

    protected native void onDestroy();

    public native void setContentView(View view);
}

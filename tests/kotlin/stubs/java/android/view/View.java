package android.view;

import android.content.Context;
import org.jetbrains.annotations.Nullable;

/** Signatures: https://developer.android.com/reference/android/view/View */
public class View {
    public interface OnClickListener {
        void onClick(View v);
    }

    public View(Context context) {}

    public native void setOnClickListener(@Nullable OnClickListener l);

    public native void setFitsSystemWindows(boolean fitSystemWindows);

    public native boolean getFitsSystemWindows();
}

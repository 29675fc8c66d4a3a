package android.view;

import android.content.Context;

/** Signatures: https://developer.android.com/reference/android/view/ViewGroup */
public abstract class ViewGroup extends View {
    public ViewGroup(Context context) {
        super(context);
    }

    public native void addView(View child);

    public native void removeAllViews();
}

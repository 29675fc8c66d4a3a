package android.widget;

import android.content.Context;
import android.view.ViewGroup;

/** Signatures: https://developer.android.com/reference/android/widget/LinearLayout */
public class LinearLayout extends ViewGroup {
    public static final int HORIZONTAL = 0;
    public static final int VERTICAL = 1;

    public LinearLayout(Context context) {
        super(context);
    }

    public native int getOrientation();

    public native void setOrientation(int orientation);
}

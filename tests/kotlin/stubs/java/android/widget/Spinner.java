package android.widget;

import android.content.Context;

/** Signatures: https://developer.android.com/reference/android/widget/Spinner */
public class Spinner extends AdapterView<SpinnerAdapter> {
    public Spinner(Context context) {
        super(context);
    }

    public native SpinnerAdapter getAdapter();

    public native void setAdapter(SpinnerAdapter adapter);
}

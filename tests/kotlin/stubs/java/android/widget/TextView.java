package android.widget;

import android.content.Context;
import android.view.View;

/** Signatures: https://developer.android.com/reference/android/widget/TextView */
public class TextView extends View {
    public TextView(Context context) {
        super(context);
    }

    public native CharSequence getText();

    public final native void setText(CharSequence text);

    public native float getTextSize();

    public native void setTextSize(float size);

    public native int getInputType();

    public native void setInputType(int type);
}

package android.widget;

import android.content.Context;
import android.text.Editable;

/** Signatures: https://developer.android.com/reference/android/widget/EditText */
public class EditText extends TextView {
    public EditText(Context context) {
        super(context);
    }

    @Override
    public native Editable getText();
}

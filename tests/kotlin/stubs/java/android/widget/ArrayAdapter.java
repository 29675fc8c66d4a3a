package android.widget;

import android.content.Context;
import java.util.List;
import org.jetbrains.annotations.NotNull;

/** Signatures: https://developer.android.com/reference/android/widget/ArrayAdapter */
public class ArrayAdapter<T> implements SpinnerAdapter {
    public ArrayAdapter(@NotNull Context context, int resource, @NotNull List<T> objects) {}
}

package org.json;

import java.util.Iterator;
import org.jetbrains.annotations.NotNull;

/** Signatures: https://developer.android.com/reference/org/json/JSONObject */
public class JSONObject {
    public JSONObject() {}

    public JSONObject(@NotNull String json) throws JSONException {}

    public native boolean has(String name);

    public native boolean isNull(String name);

    @NotNull
    public native Iterator<String> keys();

    @NotNull
    public native JSONObject getJSONObject(@NotNull String name) throws JSONException;

    @NotNull
    public native JSONArray getJSONArray(@NotNull String name) throws JSONException;

    @NotNull
    public native String getString(@NotNull String name) throws JSONException;

    public native int getInt(@NotNull String name) throws JSONException;

    public native double getDouble(@NotNull String name) throws JSONException;

    public native boolean getBoolean(@NotNull String name) throws JSONException;
}

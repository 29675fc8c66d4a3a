plugins {
    id("com.android.application")
    id("org.jetbrains.kotlin.android")
}

android {
    namespace = "org.example.federated"
    compileSdk = 36

    defaultConfig {
        applicationId = "org.example.federated"
        minSdk = 23
        targetSdk = 36
        versionCode = 1
        versionName = "1.0"
    }

    compileOptions {
        sourceCompatibility = JavaVersion.VERSION_17
        targetCompatibility = JavaVersion.VERSION_17
    }

    kotlinOptions { jvmTarget = "17" }

    androidResources { noCompress += "tflite" } // so that the runtime can map the file into memory
}

dependencies {
    implementation("com.google.ai.edge.litert:litert:2.1.5")
}

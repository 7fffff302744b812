/** Ways in which a service that speaks Gemini's form differs from the Gemini API itself. Absent members mean the default. */
export interface GeminiDialect {
  /** Requests may carry labels for the bill (Vertex). Default no: they are left out and reported. */
  labels?: boolean;
}

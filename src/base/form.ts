/** A multipart form that was read completely. Both maps are by name, in order; a name may repeat. */
export interface Form {
  texts: ReadonlyMap<string, readonly string[]>;
  files: ReadonlyMap<string, readonly FormFile[]>;
}

export interface FormFile {
  filename: string;
  /** As the client says; '' if it does not. */
  mediaType: string;
  bytes: Buffer;
}

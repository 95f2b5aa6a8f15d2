import { X509Certificate } from "node:crypto";
import { readSmallFile } from "./read-small-file.ts";

/** Returns the text of a file of certificates in PEM, or null if it is no such file or cannot be read. */
export function readCertificates(file: string): string | null {
  try {
    const text = readSmallFile(file);
    void new X509Certificate(text);
    return text;
  } catch {
    return null;
  }
}

import { X509Certificate } from "node:crypto";
import { readSmallFile } from "./read-small-file.ts";

/** The text of a file of certificates in PEM; null where it is none, or cannot be read. */
export function readCertificates(file: string): string | null {
  try {
    const text = readSmallFile(file);
    void new X509Certificate(text);
    return text;
  } catch {
    return null;
  }
}

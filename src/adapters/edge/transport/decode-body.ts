import { pipeline, type Readable } from "node:stream";
import zlib from "node:zlib";

export class UnknownEncodingError extends Error {
  override readonly name = "UnknownEncodingError";
}

/**
 * With the default pieces of 16 KiB, a page of a megabyte costs the main thread more than inflating it costs the
 * thread pool.
 */
const CHUNK_BYTES = 262_144;
/**
 * 8 MiB, the most that RFC 9659 allows a server. The default of 128 MiB per answer would let a hostile server use up
 * the memory.
 */
const ZSTD_WINDOW_LOG = 23;

function createDecoder(encoding: string) {
  switch (encoding) {
    case "gzip":
    case "x-gzip":
      return zlib.createGunzip({ chunkSize: CHUNK_BYTES });
    case "br":
      return zlib.createBrotliDecompress();
    case "zstd":
      return zlib.createZstdDecompress({ params: { [zlib.constants.ZSTD_d_windowLogMax]: ZSTD_WINDOW_LOG } });
    case "deflate":
      return zlib.createInflate();
    default:
      throw new UnknownEncodingError(`content-encoding ${encoding} cannot be read`);
  }
}

/**
 * Returns the body without its content encodings (gzip, br, zstd, deflate, or several). Destroying it destroys the
 * source.
 */
export function decodeBody(body: Readable, contentEncoding: string | undefined): Readable {
  const encodings = (contentEncoding ?? "")
    .split(",")
    .map((part) => part.trim().toLowerCase())
    .filter((part) => part !== "" && part !== "identity");
  try {
    return encodings.reverse().reduce<Readable>((source, encoding) => {
      const decoder = createDecoder(encoding);
      // The reader of the last stage sees every error. The callback only prevents unhandled errors.
      return pipeline(source, decoder, () => {});
    }, body);
  } catch (error) {
    body.on("error", () => {}).destroy();
    throw error;
  }
}

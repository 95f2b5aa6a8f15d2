const NDJSON = ["application/x-ndjson", "application/ndjson"];
/** The default media type. */
const CSV = "text/csv";

/**
 * Returns whether an `Accept` header asks for NDJSON, which is an extension: by name, with a quality above 0, and not
 * below that of CSV if the header names CSV too.
 */
export function prefersNdjson(accept = ""): boolean {
  const qualities = new Map(accept.split(",").map(readRange));
  const wanted = Math.max(...NDJSON.map((type) => qualities.get(type) ?? 0));
  return wanted > 0 && wanted >= (qualities.get(CSV) ?? 0);
}

function readRange(text: string): [type: string, quality: number] {
  const [type = "", ...parameters] = text.split(";").map((part) => part.trim().toLowerCase());
  const quality = parameters.find((one) => one.startsWith("q="))?.slice(2);
  return [type, quality === undefined ? 1 : Number(quality) || 0];
}

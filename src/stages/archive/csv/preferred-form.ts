export const PARQUET_TYPE = "application/vnd.apache.parquet";

/** Forms of an export and their media types. The first form is the default. */
const TYPES = {
  csv: ["text/csv"],
  ndjson: ["application/x-ndjson", "application/ndjson"],
  parquet: [PARQUET_TYPE],
} as const;

type Form = keyof typeof TYPES;

/**
 * Returns the form of an export that an `Accept` header asks for. NDJSON and Parquet, which are extensions, must be
 * named with a quality above 0 and not below that of the other forms.
 */
export function preferredForm(accept = ""): Form {
  const qualities = new Map(accept.split(",").map(readRange));
  const qualityOf = (form: Form) => Math.max(...TYPES[form].map((type) => qualities.get(type) ?? 0));
  let best: Form = "csv";
  for (const form of ["ndjson", "parquet"] as const)
    if (qualityOf(form) > 0 && qualityOf(form) >= qualityOf(best)) best = form;
  return best;
}

function readRange(text: string): [type: string, quality: number] {
  const [type = "", ...parameters] = text.split(";").map((part) => part.trim().toLowerCase());
  const quality = parameters.find((one) => one.startsWith("q="))?.slice(2);
  return [type, quality === undefined ? 1 : Number(quality) || 0];
}

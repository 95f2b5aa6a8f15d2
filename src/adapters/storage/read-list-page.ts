import type { ListedFile } from "#model/archive-storage.ts";

const ENTITIES: Readonly<Record<string, string>> = { lt: "<", gt: ">", amp: "&", quot: '"', apos: "'" };

/** Reads one page of a list of objects (ListObjects). Paths are whole keys. */
export function readListPage(xml: string): {
  readonly files: readonly ListedFile[];
  readonly isLast: boolean;
} {
  const isEncoded = read(xml, "EncodingType") === "url";
  const files = Array.from(xml.matchAll(/<Contents>(.*?)<\/Contents>/gs), ([, entry = ""]) => {
    const key = read(entry, "Key") ?? "";
    return {
      path: isEncoded ? decodeURIComponent(key.replaceAll("+", " ")) : key,
      bytes: Number(read(entry, "Size")),
      modifiedAt: Date.parse(read(entry, "LastModified") ?? ""),
    };
  });
  return { files, isLast: read(xml, "IsTruncated") !== "true" };
}

function read(xml: string, name: string): string | null {
  const [, text] = new RegExp(`<${name}>([^<]*)</${name}>`).exec(xml) ?? [];
  return text?.replaceAll(/&(lt|gt|amp|quot|apos);/g, (_, entity: string) => ENTITIES[entity] ?? "") ?? null;
}

/**
 * Loaded before everything else, because it makes every command start three times as fast. For each file of a package
 * Node 24 parses the whole package.json again, and drizzle-orm's has 180 kB for its hundred files. An import inside
 * drizzle-orm needs none of it, and an import from outside resolves to the same file each time. An import of a file of
 * our own names the file in full, by its place or by its room (`imports` of package.json), so nothing is looked up for it.
 */
import { type ResolveFnOutput, registerHooks } from "node:module";

const PACKAGE = "drizzle-orm";
const known = new Map<string, ResolveFnOutput>();

registerHooks({
  resolve(specifier, context, next) {
    if (!context.conditions.includes("import")) return next(specifier, context);
    if (specifier === PACKAGE || specifier.startsWith(`${PACKAGE}/`)) {
      const found = known.get(specifier) ?? { ...next(specifier, context), shortCircuit: true };
      known.set(specifier, found);
      return found;
    }
    const isOurs = specifier.startsWith("#") && specifier.endsWith(".ts");
    const format = specifier.startsWith(".") || isOurs ? formatOf(specifier, context.parentURL) : null;
    if (format === null) return next(specifier, context);
    const url = isOurs ? toRoom(specifier.slice(1)) : new URL(specifier, context.parentURL);
    return { url: url.href, format, shortCircuit: true };
  },
});

/** Returns the file of an import by room. Some rooms are folders beside src; all others are folders in src. */
function toRoom(path: string): URL {
  return new URL(/^(db|jobs|test)\//.test(path) ? `../../${path}` : `../${path}`, import.meta.url);
}

/** Returns the format of a relative import that names a file in full; null if the format is unknown. */
function formatOf(specifier: string, parentUrl = ""): "module" | "module-typescript" | null {
  if (specifier.endsWith(".ts")) return "module-typescript";
  return parentUrl.includes(`/node_modules/${PACKAGE}/`) ? "module" : null;
}

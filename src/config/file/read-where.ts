import type { Filter } from "#model/fields.ts";
import { refuseManyTests } from "#stages/archive/query/count-tests.ts";
import { FILTER_RULE, parseFilter, toNativeFilter } from "#stages/archive/query/filter-text.ts";
import { readSearch } from "#stages/archive/query/read-search.ts";
import { splitMistake } from "#stages/archive/query/split-mistake.ts";

interface ReadWhere {
  readonly filters: readonly Filter[];
  readonly mistakes: readonly string[];
}

/** Any span: the search language needs one, and a destination has none. */
const SPAN = { from: 0, to: 1 };
const METHOD_RULE =
  "the method is in the records of events only, and cannot select the events of a destination";

/** Reads the filters at a path of the file, each as `--filter` of a search. */
export function readWhere(at: string, texts: readonly string[]): ReadWhere {
  const read = texts.map((text, index) =>
    readOne(`${at}[${index}]: ${JSON.stringify(text.slice(0, 80))}`, text),
  );
  const tooMany = refuseManyTests({ ...SPAN, filters: read.flatMap(({ filters }) => filters) });
  return {
    filters: read.flatMap(({ filters }) => filters),
    mistakes: [
      ...read.flatMap(({ mistakes }) => mistakes),
      ...Object.values(tooMany ?? {}).flatMap((rules) => rules.map((rule) => `${at}: ${rule}`)),
    ],
  };
}

function readOne(at: string, text: string): ReadWhere {
  const written = parseFilter(text);
  const wrong = (mistakes: readonly string[]) => ({ filters: [], mistakes });
  if (written === null) return wrong([`${at}: must be ${FILTER_RULE}`]);
  const read = readSearch({ ...SPAN, filters: [toNativeFilter(written)] }, "export", "native");
  if ("mistakes" in read)
    return wrong(
      Object.entries(read.mistakes).flatMap(([field, rules]) =>
        rules.map((rule) => `${at}: ${field.replace("filters[0].", "")}: ${toRule(field, rule)}`),
      ),
    );
  const { filters } = read.search;
  return filters.some(({ field }) => field === "method")
    ? wrong([`${at}: ${METHOD_RULE}`])
    : { filters, mistakes: [] };
}

function toRule(field: string, text: string): string {
  const { value, rule } = splitMistake(field, text);
  return value === undefined ? rule : `${value}: ${rule}`;
}

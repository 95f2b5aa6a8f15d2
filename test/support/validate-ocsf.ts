import { existsSync, readFileSync } from "node:fs";
import path from "node:path";

/** A part of the published definitions, as far as the check reads it. */
interface Attribute {
  readonly requirement?: string;
  readonly type?: string;
  readonly is_array?: boolean;
  readonly sibling?: string;
  enum?: Readonly<Record<string, unknown>>;
  /** The profile that the attribute belongs to; null if the class has it in any case. */
  readonly profile?: string | null;
}

interface Definition {
  readonly name: string;
  readonly uid?: number;
  readonly category?: string;
  readonly extends?: string;
  readonly attributes: Readonly<Record<string, Attribute>>;
  readonly constraints?: { readonly at_least_one?: readonly string[]; readonly just_one?: readonly string[] };
}

interface BaseType {
  readonly type?: string;
  readonly regex?: string;
  readonly max_len?: number;
  readonly range?: readonly [number, number];
}

const FOLDER = path.join(import.meta.dirname, "ocsf");
const readJson = (file: string) => JSON.parse(readFileSync(path.join(FOLDER, file), "utf8")) as unknown;
const dictionary = readJson("dictionary.json") as {
  readonly attributes: Readonly<Record<string, Attribute>>;
  readonly types: { readonly attributes: Readonly<Record<string, BaseType>> };
};
const { version } = readJson("version.json") as { readonly version: string };
const CATEGORIES: Readonly<Record<string, number>> = { findings: 2, network: 4 };

const loaded = new Map<string, Definition>();

/** Returns a class or an object with what it inherits and includes. Enumerations add up. */
function load(folder: "events" | "objects", name: string): Definition {
  const key = `${folder}/${name}`;
  const known = loaded.get(key);
  if (known !== undefined) return known;
  const own = readJson(`${key}.json`) as Definition;
  const base = own.extends === undefined ? null : load(folder, own.extends);
  const { $include = [], ...attributes } = own.attributes as Definition["attributes"] & {
    readonly $include?: readonly string[];
  };
  const merged: Record<string, Attribute> = { ...base?.attributes };
  const add = (more: Definition["attributes"], profile?: string) => {
    for (const [attribute, one] of Object.entries(more)) {
      const before = merged[attribute];
      const inProfile = profile === undefined ? {} : { profile };
      merged[attribute] = { ...before, ...inProfile, ...one, ...mergeEnums(before, one) };
    }
  };
  for (const file of $include) {
    const profile = readJson(file) as Definition;
    add(profile.attributes, profile.name);
  }
  add(attributes);
  const definition = { ...base, ...own, attributes: merged };
  loaded.set(key, definition);
  return definition;
}

function mergeEnums(...parts: readonly (Attribute | undefined)[]): Pick<Attribute, "enum"> {
  const enums = parts.flatMap((part) => (part?.enum === undefined ? [] : [part.enum]));
  return enums.length === 0 ? {} : { enum: Object.assign({}, ...enums) as NonNullable<Attribute["enum"]> };
}

type Value = Readonly<Record<string, unknown>>;
const isObject = (value: unknown): value is Value =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/**
 * Returns everything in which an object of this class breaks the published definitions: unknown attributes, missing ones,
 * attributes of profiles that are not named, types, enumerations, constraints, and the numbers that follow from others. Empty
 * texts are mistakes too, because an unknown value is to be left out.
 */
export function findOcsfMistakes(className: "http_activity" | "detection_finding", event: unknown): string[] {
  const definition = load("events", className);
  if (!isObject(event)) return ["is no object"];
  const { metadata, category_uid: category, class_uid: uid, type_uid: type, activity_id: activity } = event;
  const profiles = isObject(metadata) && Array.isArray(metadata["profiles"]) ? metadata["profiles"] : [];
  const mistakes = check(definition, event, { at: className, profiles });
  const wanted = { category: CATEGORIES[definition.category ?? ""], uid: 0, type: 0, version };
  wanted.uid = (wanted.category ?? 0) * 1_000 + (definition.uid ?? 0);
  wanted.type = wanted.uid * 100 + Number(activity);
  const found = { category, uid, type, version: isObject(metadata) ? metadata["version"] : undefined };
  for (const [name, value] of Object.entries(wanted))
    if (found[name as keyof typeof found] !== value) mistakes.push(`${name} must be ${value}`);
  for (const profile of profiles)
    if (!existsSync(path.join(FOLDER, "profiles", `${profile}.json`)))
      mistakes.push(`${profile} is no profile`);
  return mistakes;
}

interface Place {
  readonly at: string;
  readonly profiles: readonly unknown[];
}

function check({ attributes, constraints }: Definition, value: Value, { at, profiles }: Place): string[] {
  const mistakes: string[] = [];
  const isApplied = ({ profile }: Attribute) => profile == null || profiles.includes(profile);
  for (const [name, one] of Object.entries(value)) {
    const attribute = attributes[name];
    const general = dictionary.attributes[name];
    const place = `${at}.${name}`;
    if (attribute === undefined || general === undefined) mistakes.push(`${place} is no attribute`);
    else if (!isApplied(attribute)) mistakes.push(`${place} needs the profile ${attribute.profile}`);
    else {
      const whole = { ...general, ...attribute, ...mergeEnums(general, attribute) };
      // Every class replaces the numbers of the class that it extends.
      if (name === "class_uid" || name === "category_uid") delete whole.enum;
      const each = whole.is_array === true ? one : [one];
      if (!Array.isArray(each)) mistakes.push(`${place} must be a list`);
      else
        for (const item of each as readonly unknown[])
          mistakes.push(...checkValue(whole, item, { at: place, profiles }));
      if (one === 99 && whole.sibling !== undefined && value[whole.sibling] === undefined)
        mistakes.push(`${place} of 99 needs ${whole.sibling}`);
    }
  }
  for (const [name, attribute] of Object.entries(attributes))
    if (attribute.requirement === "required" && isApplied(attribute) && value[name] === undefined)
      mistakes.push(`${at}.${name} is missing`);
  const { at_least_one: some, just_one: single } = constraints ?? {};
  if (some !== undefined && !some.some((name) => name in value))
    mistakes.push(`${at} needs one of ${some.join()}`);
  if (single !== undefined && single.filter((name) => name in value).length !== 1)
    mistakes.push(`${at} needs exactly one of ${single.join()}`);
  return mistakes;
}

function checkValue({ type = "", enum: words }: Attribute, value: unknown, place: Place): string[] {
  const wrong = (rule: string) => [`${place.at} must be ${rule}: ${JSON.stringify(value)?.slice(0, 100)}`];
  if (words !== undefined && !(String(value) in words)) return wrong(`one of ${Object.keys(words).join()}`);
  if (type === "json_t") return value === undefined ? wrong("JSON") : [];
  // The generic object takes any members.
  if (type === "object") return isObject(value) ? [] : wrong("an object");
  const known = dictionary.types.attributes[type];
  if (known === undefined) {
    if (!isObject(value)) return wrong(`an object of ${type}`);
    return check(load("objects", type), value, place);
  }
  const { regex, max_len: longest, range } = known;
  switch (known.type ?? type) {
    case "string_t":
      if (typeof value !== "string" || value === "" || !value.isWellFormed()) return wrong("a text");
      if (longest !== undefined && value.length > longest) return wrong(`at most ${longest} characters`);
      return regex === undefined || new RegExp(regex, "u").test(value) ? [] : wrong(type);
    case "integer_t":
    case "long_t":
      if (!Number.isSafeInteger(value)) return wrong("a whole number");
      return range === undefined || (Number(value) >= range[0] && Number(value) <= range[1])
        ? []
        : wrong("in its range");
    case "boolean_t":
      return typeof value === "boolean" ? [] : wrong("true or false");
    case "float_t":
      return Number.isFinite(value) ? [] : wrong("a number");
    default:
      return wrong(`of the type ${type}, which the check does not know`);
  }
}

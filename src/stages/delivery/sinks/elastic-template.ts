/** Lucene refuses a longer term: 32,766 bytes, at four bytes a character. */
const IGNORE_ABOVE = 8_191;
const keyword = { type: "keyword", ignore_above: IGNORE_ABOVE };
/** Indexed only where it is an address: a masked one, such as `203.0.113.*`, is none. */
const address = { ...keyword, fields: { ip: { type: "ip", ignore_malformed: true } } };
/** Kept in `_source` as it is. What the platform writes there may be a text in one event and an object in the next. */
const unindexed = { type: "object", enabled: false };

/**
 * Returns the index template for events of every format. Without it, the first event decides what a field is: a user agent
 * that looks like a date makes the field a date, and later events are refused.
 */
export function toIndexTemplate(index: string) {
  return {
    index_patterns: [index],
    priority: 150,
    template: {
      settings: { "index.mapping.ignore_malformed": true },
      mappings: {
        date_detection: false,
        numeric_detection: false,
        dynamic_templates: [{ texts: { match_mapping_type: "string", mapping: keyword } }],
        properties: {
          "@timestamp": { type: "date" },
          longwatch: { properties: { zone: { type: "long" } } },
          timestamp: { type: "double" },
          fields: { properties: { address } },
          log: unindexed,
          src_endpoint: { properties: { ip: { type: "ip", ignore_malformed: true } } },
          raw_data: { type: "keyword", index: false, doc_values: false },
          unmapped: unindexed,
        },
      },
    },
    _meta: { description: "Events that Longwatch forwards (docs/forwarding.md)" },
  };
}

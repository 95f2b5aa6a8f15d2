import { Button, Select, TextInput } from "@mantine/core";
import { useEffect, useState } from "react";
import { FIELD_NAMES, type FieldName, refuseValue } from "#model/fields.ts";
import type { EventScope } from "../../api/search.ts";
import { useMay } from "../../api/session.ts";
import { Payload } from "../../components/payload.tsx";
import { PopoverForm } from "../../components/popover-form.tsx";
import { Icon } from "../../look/icons.tsx";
import { NO_VALUE, wordField } from "../../look/words.ts";
import {
  addFilter,
  type EventFilter,
  FILTER_KINDS,
  type FilterKind,
  isSameFilter,
  KIND_NAMES,
  toFilterParams,
  wordFilter,
} from "../../state/filters.ts";
import { useUrlState } from "../../state/url-state.ts";
import { CopyMenu } from "./copy-menu.tsx";
import classes from "./explorer.module.css";
import { ExportMenu } from "./export-menu.tsx";
import { ViewsMenu } from "./views-menu.tsx";

/** The search text, the filters, and what can be done with what they find. */
export function FilterBar({ scope }: { readonly scope: EventScope }) {
  const { change } = useUrlState();
  const mayExport = useMay("export");
  const { filters, query } = scope;
  const set = (next: readonly EventFilter[]) => change({ ...toFilterParams(next) });
  return (
    <div className={classes["bar"]}>
      <TextSearch query={query} onSearch={(text) => change({ q: text === "" ? null : text })} />
      {filters.map((filter) => (
        <Chip
          key={`${filter.kind} ${filter.field} ${filter.value}`}
          filter={filter}
          onTurn={() =>
            set(
              filters.map((one) =>
                isSameFilter(one, filter) ? { ...one, kind: FILTER_KINDS[one.kind].opposite } : one,
              ),
            )
          }
          onRemove={() => set(filters.filter((one) => !isSameFilter(one, filter)))}
        />
      ))}
      <AddFilter onAdd={(filter) => set(addFilter(filters, filter))} />
      {filters.length + query.length > 0 ? (
        <Button variant="subtle" color="gray" onClick={() => change({ ...toFilterParams([]), q: null })}>
          Clear
        </Button>
      ) : null}
      <div className={classes["tools"]}>
        <ViewsMenu />
        {mayExport ? <ExportMenu scope={scope} /> : null}
        <CopyMenu scope={scope} />
      </div>
    </div>
  );
}

function TextSearch({
  query,
  onSearch,
}: {
  readonly query: string;
  readonly onSearch: (text: string) => void;
}) {
  const [text, setText] = useState(query);
  useEffect(() => setText(query), [query]);
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        onSearch(text.trim());
      }}
    >
      <TextInput
        size="xs"
        aria-label="Text in address, rule, URL, user agent or message"
        placeholder="Text in address, URL, user agent, message"
        value={text}
        leftSection={<Icon name="explorer" size={14} />}
        onChange={(event) => setText(event.currentTarget.value)}
      />
    </form>
  );
}

interface ChipProps {
  readonly filter: EventFilter;
  readonly onTurn: () => void;
  readonly onRemove: () => void;
}

function Chip({ filter, onTurn, onRemove }: ChipProps) {
  const { kind, field, value } = filter;
  const { word, isNot } = FILTER_KINDS[kind];
  return (
    <span className={classes["chip"]} data-not={isNot || undefined}>
      <button type="button" className={classes["turn"]} title="Turn into the opposite" onClick={onTurn}>
        <span>
          {wordField(field)} <b>{word}</b> <Payload text={value} none={NO_VALUE} />
        </span>
      </button>
      <button type="button" aria-label={`Remove the filter ${wordFilter(filter)}`} onClick={onRemove}>
        <Icon name="close" size={12} />
      </button>
    </span>
  );
}

function AddFilter({ onAdd }: { readonly onAdd: (filter: EventFilter) => void }) {
  const [isOpen, setOpen] = useState(false);
  const [field, setField] = useState<FieldName>("rule");
  const [kind, setKind] = useState<FilterKind>("is");
  const [value, setValue] = useState("");
  const [mistake, setMistake] = useState<string | null>(null);
  const kinds = KIND_NAMES.filter((one) => FILTER_KINDS[one].op !== "cidr" || field === "address");
  const chosen = kinds.includes(kind) ? kind : "is";
  const { op } = FILTER_KINDS[chosen];
  return (
    <PopoverForm
      word="Filter"
      button={{ leftSection: <Icon name="plus" size={12} /> }}
      width={320}
      isOpen={isOpen}
      onToggle={setOpen}
      onSubmit={() => {
        const rule = refuseValue(field, op, value.trim());
        setMistake(rule);
        if (rule !== null) return;
        onAdd({ field, kind: chosen, value: value.trim() });
        setValue("");
        setOpen(false);
      }}
    >
      <Select
        size="xs"
        label="Field"
        allowDeselect={false}
        comboboxProps={{ withinPortal: false }}
        data={FIELD_NAMES.map((name) => ({ value: name, label: wordField(name) }))}
        value={field}
        onChange={(name) => setField(name ?? "rule")}
      />
      <Select
        size="xs"
        aria-label="Kind of filter"
        allowDeselect={false}
        comboboxProps={{ withinPortal: false }}
        data={kinds.map((one) => ({ value: one, label: FILTER_KINDS[one].word }))}
        value={chosen}
        onChange={(one) => setKind(one ?? "is")}
      />
      <TextInput
        size="xs"
        label="Value"
        description={
          op === "wildcard"
            ? "* stands for any text."
            : op === "cidr"
              ? "For example 203.0.113.0/24."
              : "Empty means: no value."
        }
        value={value}
        error={mistake}
        onChange={(event) => setValue(event.currentTarget.value)}
      />
      <Button type="submit">Add filter</Button>
    </PopoverForm>
  );
}

/** The filters of the explorer, and what can be copied and exported. */
import { Button, Checkbox, CloseButton, Group, Popover, Select, Stack, TextInput } from "@mantine/core";
import { useState } from "react";
import { useLocation } from "wouter";
import { useFields } from "#faces/console/components/forms.tsx";
import { FIELD_NAMES, type FieldName, refuseValue } from "#model/fields.ts";
import type { ExportFormName } from "#model/kinds.ts";
import { type Item, useChange, useOperation } from "../../api/ask.ts";
import { send, toProblem } from "../../api/client.ts";
import { type EventScope, eventsPath, toBody } from "../../api/search.ts";
import { useMay, useSession } from "../../api/session.ts";
import { ChoiceMenu } from "../../components/buttons.tsx";
import { PopoverForm, TextForm } from "../../components/forms.tsx";
import { Payload } from "../../components/payload.tsx";
import { ProblemBox } from "../../components/states.tsx";
import { copyText, quoteForShell, saveFile, shareLink, useNote } from "../../state/browser.ts";
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
import { Icon } from "../../style/icons.tsx";
import { formatBytes, NO_VALUE, wordField } from "../../style/words.ts";
import classes from "./explorer.module.css";

/** The search text, the filters, and what can be done with what they find. */
export function FilterBar({ scope }: { readonly scope: EventScope }) {
  const { change } = useUrlState();
  const mayExport = useMay("export");
  const { filters, query } = scope;
  const set = (next: readonly EventFilter[]) => change({ ...toFilterParams(next) });
  return (
    <div className={classes["bar"]}>
      <TextForm
        aria-label="Text in address, rule, URL, user agent or message"
        placeholder="Text in address, URL, user agent, message"
        leftSection={<Icon name="explorer" size={14} />}
        text={query}
        onSubmit={(text) => change({ q: text === "" ? null : text })}
      />
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
      <Group gap={6} ml="auto">
        <ViewsMenu />
        {mayExport ? <ExportMenu scope={scope} /> : null}
        <CopyMenu scope={scope} />
      </Group>
    </div>
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
      <button
        type="button"
        className={`lw-plain ${classes["turn"]}`}
        title="Turn into the opposite"
        onClick={onTurn}
      >
        <span>
          {wordField(field)} <b>{word}</b> <Payload text={value} none={NO_VALUE} />
        </span>
      </button>
      <CloseButton size="sm" aria-label={`Remove the filter ${wordFilter(filter)}`} onClick={onRemove} />
    </span>
  );
}

function AddFilter({ onAdd }: { readonly onAdd: (filter: EventFilter) => void }) {
  const [isOpen, setOpen] = useState(false);
  const [mistake, setMistake] = useState<string | null>(null);
  const { values, set, text, choice } = useFields({
    field: "rule" as FieldName,
    kind: "is" as FilterKind,
    value: "",
  });
  const field = values.field;
  const kinds = KIND_NAMES.filter((one) => FILTER_KINDS[one].op !== "cidr" || field === "address");
  const kind = kinds.includes(values.kind) ? values.kind : "is";
  const { op } = FILTER_KINDS[kind];
  return (
    <PopoverForm
      word="Filter"
      button={{ leftSection: <Icon name="plus" size={12} /> }}
      width={320}
      isOpen={isOpen}
      onToggle={setOpen}
      onSubmit={() => {
        const value = values.value.trim();
        const rule = refuseValue(field, op, value);
        setMistake(rule);
        if (rule !== null) return;
        onAdd({ field, kind, value });
        set("value", "");
        setOpen(false);
      }}
      submit={{ word: "Add filter" }}
    >
      <Select
        label="Field"
        data={FIELD_NAMES.map((name) => ({ value: name, label: wordField(name) }))}
        {...choice("field")}
      />
      <Select
        aria-label="Kind of filter"
        data={kinds.map((one) => ({ value: one, label: FILTER_KINDS[one].word }))}
        {...choice("kind")}
        value={kind}
      />
      <TextInput
        label="Value"
        description={HINTS[op] ?? "Empty means: no value."}
        {...text("value")}
        error={mistake}
      />
    </PopoverForm>
  );
}

const HINTS: Readonly<Record<string, string>> = {
  wildcard: "* stands for any text.",
  cidr: "For example 203.0.113.0/24.",
};

/** The query that the page sends, for other people and for programs. */
function CopyMenu({ scope }: { readonly scope: EventScope }) {
  const { publicUrl } = useSession();
  const [note, say] = useNote(1_500);
  const copy = async (what: string, text: string) =>
    say((await copyText(text)) ? `${what} copied` : "not copied");
  const items = {
    "Link with fixed times": () => void copy("link", shareLink(scope)),
    "curl of this search": () => void copy("curl", toCurl(scope, publicUrl ?? globalThis.location.origin)),
    "JSON of this search": () => void copy("body", JSON.stringify(toBody(scope), null, 2)),
  };
  return <ChoiceMenu word={note ?? "Copy as"} items={items} />;
}

/** The key is a variable: a copied command must not hold one. */
export function toCurl(scope: EventScope, origin: string): string {
  const body = quoteForShell(JSON.stringify(toBody(scope)));
  const address = quoteForShell(`${origin}${eventsPath(scope)}/search`);
  return `curl -sS ${address} -H "AccessKey: $KEY" -H 'content-type: application/json' -d ${body}`;
}

/** The ending of each format's file. Parquet is for programs. */
const ENDINGS = { csv: "csv", ndjson: "ndjson", ocsf: "ocsf.ndjson" } as const satisfies Partial<
  Record<ExportFormName, string>
>;
type Format = keyof typeof ENDINGS;

/** Saves exactly the events that the page shows: the same span, text and filters. A file of several zones names the zone of each event. */
function ExportMenu({ scope }: { readonly scope: EventScope }) {
  const [note, say] = useNote(6_000);
  const run = async (format: Format) => {
    try {
      say(`${formatBytes(await save(format, scope))} saved`);
    } catch (thrown) {
      say(toProblem(thrown).message.slice(0, 120));
    }
  };
  const items = {
    "CSV for spreadsheets": () => void run("csv"),
    "NDJSON with unchanged texts": () => void run("ndjson"),
    "OCSF 1.8, without records": () => void run("ocsf"),
  };
  return (
    <ChoiceMenu word={note ?? "Export"} leftSection={<Icon name="download" size={13} />} items={items} />
  );
}

async function save(format: Format, scope: EventScope): Promise<number> {
  const response = await send(`${eventsPath(scope)}/export`, {
    method: "POST",
    body: { ...toBody(scope), format },
  });
  const blob = await response.blob();
  saveFile(`event-logs-${scope.zones.length === 1 ? scope.zones[0]?.id : "zones"}.${ENDINGS[format]}`, blob);
  return blob.size;
}

const PAGE = "explorer";

/** Searches under a name: to open one, to save this one, to delete one. */
function ViewsMenu() {
  const [isOpen, setOpen] = useState(false);
  const views = useOperation("views.list", { limit: 500 }, { staleTime: 60_000 });
  const shown = views.data?.items.filter(({ page }) => page === PAGE);
  const [, navigate] = useLocation();
  return (
    <Popover opened={isOpen} onChange={setOpen} position="bottom-end" shadow="md" trapFocus>
      <Popover.Target>
        <Button
          variant="default"
          leftSection={<Icon name="bookmark" size={13} />}
          rightSection={<Icon name="down" size={12} />}
          onClick={() => setOpen(!isOpen)}
        >
          Views
        </Button>
      </Popover.Target>
      <Popover.Dropdown>
        <Stack gap="sm" w={300} maw="calc(100vw - 48px)">
          <ProblemBox thrown={views.error} onRetry={() => void views.refetch()} />
          {shown?.length === 0 ? <span className="lw-dim">No view is saved yet.</span> : null}
          {shown?.map((view) => (
            <ViewRow
              key={view.id}
              view={view}
              onOpen={() => {
                setOpen(false);
                navigate(`/explorer?${view.state}`);
              }}
            />
          ))}
          <SaveForm key={String(isOpen)} />
        </Stack>
      </Popover.Dropdown>
    </Popover>
  );
}

/** A view of the reader's key, or one that is shared. */
function ViewRow({ view, onOpen }: { readonly view: Item<"views.list">; readonly onOpen: () => void }) {
  const remove = useChange("views.delete");
  return (
    <Group gap={8} justify="space-between">
      <button type="button" className="lw-pick" onClick={onOpen}>
        <Payload prose text={view.name} />
        <span className="lw-dim">
          <Payload say=" shared by " prose text={view.isShared ? view.createdBy : null} />
        </span>
      </button>
      {view.isOwn ? (
        <CloseButton
          size="sm"
          aria-label={`Delete the view ${view.name}`}
          disabled={remove.isPending}
          onClick={() => remove.mutate({ id: view.id })}
        />
      ) : null}
    </Group>
  );
}

/** The typed name stays if the view cannot be saved. */
function SaveForm() {
  const save = useChange("views.save");
  const mayShare = useMay("act");
  const { values, set, text, tick } = useFields({ name: "", isShared: false });
  const name = values.name.trim();
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        const state = globalThis.location.search.slice(1);
        save.mutate(
          { name, page: PAGE, state, isShared: values.isShared },
          { onSuccess: () => set("name", "") },
        );
      }}
    >
      <Stack gap="xs">
        <TextInput
          label="Save what the page shows as"
          maxLength={80}
          {...text("name")}
          error={save.error?.message}
        />
        {mayShare ? <Checkbox label="Every key sees it" {...tick("isShared")} /> : null}
        <Button type="submit" loading={save.isPending} disabled={name === ""}>
          Save
        </Button>
      </Stack>
    </form>
  );
}

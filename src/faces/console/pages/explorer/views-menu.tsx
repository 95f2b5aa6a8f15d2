import { Button, Checkbox, CloseButton, Group, Popover, Stack, TextInput } from "@mantine/core";
import { useState } from "react";
import { useLocation } from "wouter";
import { type Item, useChange, useOperation } from "../../api/ask.ts";
import { useMay } from "../../api/session.ts";
import { Payload } from "../../components/payload.tsx";
import { ProblemBox } from "../../components/states.tsx";
import { useFields } from "../../state/fields.ts";
import { Icon } from "../../style/icons.tsx";

const PAGE = "explorer";

/** Searches under a name: to open one, to save this one, to delete one. */
export function ViewsMenu() {
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

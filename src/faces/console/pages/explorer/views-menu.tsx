import { ActionIcon, Button, Checkbox, Popover, Stack, TextInput } from "@mantine/core";
import { useState } from "react";
import { useLocation } from "wouter";
import { useMay } from "../../api/session.ts";
import { type SavedView, useDeleteView, useSaveView, useViews } from "../../api/views.ts";
import { Payload } from "../../components/payload.tsx";
import { ProblemBox } from "../../components/states.tsx";
import { Icon } from "../../look/icons.tsx";
import classes from "./explorer.module.css";

/** Searches under a name: to open one, to save this one, to delete one. */
export function ViewsMenu() {
  const [isOpen, setOpen] = useState(false);
  const views = useViews("explorer");
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
          {views.error === null ? null : (
            <ProblemBox thrown={views.error} onRetry={() => void views.refetch()} />
          )}
          {views.data?.length === 0 ? <span className="lw-dim">No view is saved yet.</span> : null}
          {views.data?.map((view) => (
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

function ViewRow({ view, onOpen }: { readonly view: SavedView; readonly onOpen: () => void }) {
  const remove = useDeleteView();
  return (
    <div className={classes["view"]}>
      <button type="button" className={classes["viewName"]} onClick={onOpen}>
        <Payload prose text={view.name} />
        <span className="lw-dim">
          {" "}
          {view.isShared ? "shared by " : ""}
          {view.isShared ? <Payload prose text={view.createdBy} /> : null}
        </span>
      </button>
      {view.isOwn ? (
        <ActionIcon
          variant="subtle"
          color="gray"
          size="sm"
          aria-label={`Delete the view ${view.name}`}
          loading={remove.isPending}
          onClick={() => remove.mutate({ id: view.id })}
        >
          <Icon name="close" size={12} />
        </ActionIcon>
      ) : null}
    </div>
  );
}

/** The typed name stays if the view cannot be saved. */
function SaveForm() {
  const save = useSaveView();
  const mayShare = useMay("act");
  const [name, setName] = useState("");
  const [isShared, setShared] = useState(false);
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        const state = globalThis.location.search.slice(1);
        save.mutate(
          { name: name.trim(), page: "explorer", state, isShared },
          { onSuccess: () => setName("") },
        );
      }}
    >
      <Stack gap="xs">
        <TextInput
          size="xs"
          label="Save what the page shows as"
          maxLength={80}
          value={name}
          error={save.error === null ? null : save.error.message}
          onChange={(event) => setName(event.currentTarget.value)}
        />
        {mayShare ? (
          <Checkbox
            size="xs"
            label="Every key sees it"
            checked={isShared}
            onChange={(event) => setShared(event.currentTarget.checked)}
          />
        ) : null}
        <Button type="submit" loading={save.isPending} disabled={name.trim() === ""}>
          Save
        </Button>
      </Stack>
    </form>
  );
}

import { type ComboboxData, Group, Select, TextInput } from '@mantine/core';
import { useDebouncedCallback } from '@mantine/hooks';
import { type FormEvent, type ReactNode, useEffect, useRef, useState } from 'react';
import { type UrlState, useUrlState } from '../url/url-state';

interface Shown {
  /** The member of the URL. */
  name: keyof UrlState;
  label: string;
  /** CSS `flex` and the largest width. */
  flex: string;
  maw: number;
}
/** Is in the URL at once. */
interface Choice extends Shown {
  /** What it is without a choice: "Any action". */
  any: string;
  choices: ComboboxData;
  searchable?: boolean;
  /** The chosen one, if it is not what the URL holds. */
  value?: string | null;
}
/** Is in the URL when it was typed. */
interface TypedText extends Shown {
  placeholder: string;
  /** What of the text may be in the URL. */
  read?: (text: string) => string | undefined;
  /** Is in the URL while it is typed. What may not be in the URL does not stay in the field either. */
  live?: boolean;
}
export type FilterField = Choice | TypedText;

const isChoice = (field: FilterField): field is Choice => 'choices' in field;
const trimmed = (text: string) => text.trim() || undefined;

/** The filter of a list, above it. */
export function FilterForm({
  fields,
  children,
}: {
  fields: readonly FilterField[];
  /** Beside the fields. */
  children?: ReactNode;
}) {
  const [url, setUrl] = useUrlState();
  const [typed, setTyped] = useState<Partial<Record<keyof UrlState, string>>>({});
  const setText = (name: keyof UrlState, text: string) => setTyped((others) => ({ ...others, [name]: text }));
  const submit = (event: FormEvent) => {
    event.preventDefault();
    const texts = fields.filter((field): field is TypedText => !isChoice(field));
    const patch = Object.fromEntries(
      texts.map(({ name, read = trimmed }) => [name, read(typed[name] ?? url[name] ?? '')] as const),
    );
    setUrl(patch);
    // What may not be in the URL, such as the rest of a secret, does not stay in the field either.
    for (const { name } of texts) setText(name, patch[name] ?? '');
  };
  return (
    <form onSubmit={submit} role="search" aria-label="This list">
      <Group gap="xs" mb="sm">
        {fields.map((field) =>
          isChoice(field) ? (
            <Select
              key={field.name}
              aria-label={field.label}
              placeholder={field.any}
              clearable
              searchable={field.searchable}
              clearButtonProps={{ 'aria-label': field.any }}
              data={field.choices}
              value={field.value === undefined ? (url[field.name] ?? null) : field.value}
              onChange={(value) => setUrl({ [field.name]: value ?? undefined })}
              flex={field.flex}
              maw={field.maw}
            />
          ) : (
            <TextFilter
              key={field.name}
              field={field}
              text={typed[field.name] ?? url[field.name] ?? ''}
              onChange={(text) => setText(field.name, text)}
            />
          ),
        )}
        {children}
        <button type="submit" hidden />
      </Group>
    </form>
  );
}

/** Nobody waits for each letter. */
const TYPING_MS = 250;

function TextFilter({
  field: { name, label, placeholder, flex, maw, read = trimmed, live = false },
  text,
  onChange,
}: {
  field: TypedText;
  text: string;
  onChange: (text: string) => void;
}) {
  const [{ [name]: inUrl = '' }, setUrl] = useUrlState();
  /** What this field put into the URL: it may be older than what was typed since. */
  const sent = useRef<string>(undefined);
  const send = useDebouncedCallback((value: string | undefined) => {
    sent.current = value ?? '';
    setUrl({ [name]: value }, { replace: true });
  }, TYPING_MS);
  useEffect(() => {
    if (inUrl !== sent.current) onChange(inUrl);
    sent.current = undefined;
  }, [inUrl]);
  return (
    <TextInput
      aria-label={label}
      placeholder={placeholder}
      value={text}
      onChange={(event) => {
        const typed = event.currentTarget.value;
        const value = read(typed);
        // Spaces at its end are kept: more may follow.
        onChange(live && value !== typed.trim() ? (value ?? '') : typed);
        if (live) send(value);
      }}
      onBlur={(event) => event.currentTarget.form?.requestSubmit()}
      autoComplete="off"
      spellCheck={false}
      flex={flex}
      maw={maw}
    />
  );
}

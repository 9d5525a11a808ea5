import { Select, Switch, TagsInput, TextInput } from '@mantine/core';
import type { ApiError } from '../../api/client';
import type { Team } from './team';

type ClaudeCode = NonNullable<Team['claude_code']>;
type Permissions = NonNullable<ClaudeCode['permissions']>;

/** Settings that Claude Code gets from the gateway. Only those that restrict it exist. */
export function ClaudeCodeFields({
  value,
  onChange,
  error,
}: {
  value: Team['claude_code'];
  onChange: (value: Team['claude_code']) => void;
  error: ApiError | undefined;
}) {
  return (
    <>
      <Select
        label="Settings for Claude Code"
        description="What it gets from the gateway once a member has signed in."
        allowDeselect={false}
        data={[
          { value: 'off', label: 'None' },
          { value: 'on', label: 'Restrict models and tools' },
        ]}
        value={value === null ? 'off' : 'on'}
        onChange={(chosen) => onChange(chosen === 'off' ? null : {})}
      />
      {value !== null && <Settings value={value} onChange={onChange} error={error} />}
    </>
  );
}

function Settings({
  value,
  onChange,
  error,
}: {
  value: ClaudeCode;
  onChange: (value: ClaudeCode) => void;
  error: ApiError | undefined;
}) {
  const { permissions = {} } = value;
  const set = (change: Partial<ClaudeCode>) => onChange(present({ ...value, ...change }));
  const permit = (change: Partial<Permissions>) => {
    const next = present({ ...permissions, ...change });
    set({ permissions: Object.keys(next).length === 0 ? undefined : next });
  };
  return (
    <>
      <TagsInput
        label="Models that people may choose"
        placeholder={value.availableModels === undefined ? 'All: sonnet, haiku, …' : undefined}
        value={value.availableModels ?? []}
        onChange={(models) => set({ availableModels: listOf(models) })}
        splitChars={[',', ' ']}
        acceptValueOnBlur
        error={error?.of('claude_code.availableModels')}
      />
      <Switch
        label="Claude Code uses no other models, also where nobody chooses"
        checked={value.enforceAvailableModels === true}
        onChange={(event) => set({ enforceAvailableModels: event.currentTarget.checked || undefined })}
      />
      <TextInput
        label="Model that a session begins with"
        value={value.model ?? ''}
        onChange={(event) => set({ model: event.currentTarget.value.trim() || undefined })}
        error={error?.of('claude_code.model')}
        autoComplete="off"
        spellCheck={false}
      />
      <TagsInput
        label="Denied uses of tools"
        description="Enter ends each rule."
        placeholder={permissions.deny === undefined ? 'WebFetch' : undefined}
        value={permissions.deny ?? []}
        onChange={(rules) => permit({ deny: listOf(rules) })}
        splitChars={[]}
        acceptValueOnBlur
        error={error?.of('claude_code.permissions.deny')}
      />
      <TagsInput
        label="Uses of tools that a person is asked about"
        description="Enter ends each rule."
        placeholder={permissions.ask === undefined ? 'Bash(git push:*)' : undefined}
        value={permissions.ask ?? []}
        onChange={(rules) => permit({ ask: listOf(rules) })}
        splitChars={[]}
        acceptValueOnBlur
        error={error?.of('claude_code.permissions.ask')}
      />
      <Switch
        label="Nobody can switch these rules off"
        checked={permissions.disableBypassPermissionsMode === 'disable'}
        onChange={(event) =>
          permit({ disableBypassPermissionsMode: event.currentTarget.checked ? 'disable' : undefined })
        }
      />
    </>
  );
}

/** What is not set is left out: null and the empty list mean something else to Claude Code. */
function present<Members extends object>(members: Members): Members {
  return Object.fromEntries(Object.entries(members).filter(([, value]) => value !== undefined)) as Members;
}

function listOf(values: string[]): string[] | undefined {
  return values.length === 0 ? undefined : values;
}

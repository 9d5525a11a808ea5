import { ActionIcon, Button, Group, Paper, Select, Stack, Text, Textarea } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import type { ApiError } from '../../api/client';
import { providersQuery } from '../../api/load-all';
import { ChevronIcon, CloseIcon } from '../../display/icons';
import { badLine, type TargetDraft } from './route';

const MAX_TARGETS = 16;

/** The targets of a route, in order. */
export function TargetFields({
  targets,
  onChange,
  error,
}: {
  targets: readonly TargetDraft[];
  onChange: (targets: TargetDraft[]) => void;
  error: ApiError | undefined;
}) {
  const providers = useQuery(providersQuery).data?.data ?? [];
  const move = (from: number, to: number) => onChange(swapped(targets, from, to));
  const names = [
    ...new Set([...providers.map(({ name }) => name), ...targets.map(({ provider }) => provider)]),
  ];
  return (
    <Stack component="fieldset" gap="xs" m={0} p={0} bd={0}>
      <Text component="legend" size="sm" fw={500} p={0} mb={4}>
        Targets
      </Text>
      {error?.of('targets') !== undefined && (
        <Text size="xs" c="var(--mantine-color-error)" role="alert">
          {error.of('targets')}
        </Text>
      )}
      {targets.map((target, at) => (
        <Target
          key={target.id}
          number={at + 1}
          count={targets.length}
          target={target}
          names={names.filter((name) => name !== '')}
          onChange={(changed) => onChange(targets.map((old, i) => (i === at ? changed : old)))}
          onMove={(by) => move(at, at + by)}
          onRemove={() => onChange(targets.filter((_, i) => i !== at))}
        />
      ))}
      {targets.length < MAX_TARGETS && (
        <div>
          <Button
            variant="default"
            size="xs"
            onClick={() =>
              onChange([
                ...targets,
                { id: Math.max(0, ...targets.map(({ id }) => id)) + 1, provider: '', models: '' },
              ])
            }
          >
            Add a target
          </Button>
        </div>
      )}
    </Stack>
  );
}

function Target({
  number,
  count,
  target,
  names,
  onChange,
  onMove,
  onRemove,
}: {
  number: number;
  count: number;
  target: TargetDraft;
  names: string[];
  onChange: (target: TargetDraft) => void;
  onMove: (by: number) => void;
  onRemove: () => void;
}) {
  const bad = badLine(target.models);
  return (
    <Paper withBorder p="xs" role="group" aria-label={`Target ${number}`}>
      <Group gap="xs" align="end">
        <Select
          label={`Target ${number}`}
          placeholder="Choose a provider"
          data={names}
          value={target.provider === '' ? null : target.provider}
          onChange={(provider) => onChange({ ...target, provider: provider ?? '' })}
          allowDeselect={false}
          style={{ flex: '1 1 10rem' }}
        />
        <Group gap={4} wrap="nowrap">
          <ActionIcon
            variant="default"
            size={36}
            aria-label={`Move target ${number} up`}
            disabled={number === 1}
            onClick={() => onMove(-1)}
          >
            <span style={{ display: 'flex', rotate: '-90deg' }}>
              <ChevronIcon size={16} />
            </span>
          </ActionIcon>
          <ActionIcon
            variant="default"
            size={36}
            aria-label={`Move target ${number} down`}
            disabled={number === count}
            onClick={() => onMove(1)}
          >
            <span style={{ display: 'flex', rotate: '90deg' }}>
              <ChevronIcon size={16} />
            </span>
          </ActionIcon>
          <ActionIcon
            variant="default"
            size={36}
            aria-label={`Remove target ${number}`}
            disabled={count === 1}
            onClick={onRemove}
          >
            <CloseIcon size={16} />
          </ActionIcon>
        </Group>
      </Group>
      <Textarea
        mt="xs"
        label={`Model names at the provider (target ${number})`}
        description="One a line: what programs send = what this provider is sent. Empty: the same names."
        placeholder="gpt-5.6 = gpt-5.6-eu"
        autosize
        minRows={1}
        maxRows={6}
        value={target.models}
        onChange={(event) => onChange({ ...target, models: event.currentTarget.value })}
        error={bad === undefined ? undefined : `Two names with = between them: ${bad}`}
        spellCheck={false}
      />
    </Paper>
  );
}

function swapped<T>(list: readonly T[], a: number, b: number): T[] {
  const copy = [...list];
  [copy[a], copy[b]] = [copy[b]!, copy[a]!];
  return copy;
}

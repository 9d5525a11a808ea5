import { Button, Center, Group, Paper, Select, Stack, Text, TextInput } from '@mantine/core';
import { type FormEvent, useState } from 'react';
import { api } from '../../api/client';
import { QUERY_VALUES } from '../../api/query-values';
import { EmptyState } from '../../display/empty-state';
import { ErrorAlert } from '../../display/error-alert';
import { LoadingRows } from '../../display/loading';
import { PageHeader } from '../../display/page-header';
import { ExactTime } from '../../figures/figure';
import { usePages } from '../../table/use-pages';
import { useTimeRange } from '../../url/time-range';
import { TimeRangePicker } from '../../url/time-range-picker';
import { useUrlState } from '../../url/url-state';
import type { AuditEntry } from './diff';
import { DiffList } from './diff-list';

const FILTERS = ['actor', 'action', 'subject_type', 'subject_name'] as const;

export default function Audit() {
  const [url, setUrl] = useUrlState();
  const range = useTimeRange('30d');
  const filter = Object.fromEntries(FILTERS.map((name) => [name, url[name]]));
  const isFiltered = FILTERS.some((name) => url[name] !== undefined);
  const query = { ...filter, ...range.query };
  const entries = usePages<AuditEntry>(['audit', query], (cursor, signal) =>
    api.get('/admin/v1/audit', { query: { ...query, cursor, limit: 50 }, signal }),
  );
  const { rows } = entries;
  return (
    <>
      <PageHeader title="Audit" description="Who changed what, newest first.">
        <TimeRangePicker range={range} />
      </PageHeader>
      <Filters />
      <ErrorAlert error={entries.error} retry={() => void entries.refetch()} />
      {rows === undefined ? (
        entries.error === null && <LoadingRows height={64} />
      ) : rows.length === 0 ? (
        isFiltered ? (
          <EmptyState
            title="No change matches"
            action={
              <Button
                variant="default"
                onClick={() => setUrl(Object.fromEntries(FILTERS.map((name) => [name, undefined])))}
              >
                Show all changes
              </Button>
            }
          >
            Names are compared whole, as they were at the time.
          </EmptyState>
        ) : (
          <EmptyState title={`No changes ${range.phrase}`}>Choose a longer range.</EmptyState>
        )
      ) : (
        <Stack component="ol" gap="xs" p={0} m={0} style={{ listStyle: 'none' }} aria-label="Changes">
          {rows.map((entry) => (
            <Entry key={entry.id} entry={entry} />
          ))}
        </Stack>
      )}
      {entries.hasNextPage && (
        <Center mt="md">
          <Button
            variant="default"
            onClick={() => void entries.fetchNextPage()}
            loading={entries.isFetchingNextPage}
          >
            Load more
          </Button>
        </Center>
      )}
    </>
  );
}

function Entry({ entry }: { entry: AuditEntry }) {
  const { at, actor, client_ip, action, subject_type, subject_name } = entry;
  return (
    <Paper withBorder px="md" py="sm" component="li">
      <Group justify="space-between" gap="xs" align="baseline">
        <Text size="sm" style={{ overflowWrap: 'anywhere', minWidth: 0 }}>
          <Text span fw={600} size="sm">
            {actor}
          </Text>{' '}
          {action} {subject_type}{' '}
          <Text span fw={600} size="sm">
            {subject_name}
          </Text>
        </Text>
        <Text size="xs" c="dimmed" component="span">
          {client_ip === null ? '' : `${client_ip} · `}
          <ExactTime at={at} seconds />
        </Text>
      </Group>
      <DiffList entry={entry} />
    </Paper>
  );
}

function Filters() {
  const [url, setUrl] = useUrlState();
  const [actor, setActor] = useState(url.actor ?? '');
  const [name, setName] = useState(url.subject_name ?? '');
  const search = (event: FormEvent) => {
    event.preventDefault();
    setUrl({ actor: actor.trim() || undefined, subject_name: name.trim() || undefined });
  };
  const submit = (event: React.FocusEvent<HTMLInputElement>) => event.currentTarget.form?.requestSubmit();
  return (
    <form onSubmit={search} role="search">
      <Group gap="xs" mb="sm">
        <Select
          aria-label="Action"
          placeholder="Any action"
          clearable
          clearButtonProps={{ 'aria-label': 'Any action' }}
          data={QUERY_VALUES.listAudit.action}
          value={url.action ?? null}
          onChange={(action) => setUrl({ action: action ?? undefined })}
          flex="1 1 120px"
          maw={160}
        />
        <Select
          aria-label="Type of object"
          placeholder="Any object"
          clearable
          clearButtonProps={{ 'aria-label': 'Any object' }}
          data={QUERY_VALUES.listAudit.subject_type}
          value={url.subject_type ?? null}
          onChange={(type) => setUrl({ subject_type: type ?? undefined })}
          flex="1 1 120px"
          maw={160}
        />
        <TextInput
          aria-label="Name of the object"
          placeholder="Name"
          value={name}
          onChange={(event) => setName(event.currentTarget.value)}
          onBlur={submit}
          flex="1 1 140px"
          maw={220}
        />
        <TextInput
          aria-label="Who"
          placeholder="Who, such as admin-token"
          value={actor}
          onChange={(event) => setActor(event.currentTarget.value)}
          onBlur={submit}
          flex="1 1 180px"
          maw={240}
        />
        <button type="submit" hidden />
      </Group>
    </form>
  );
}

import { Button, Group, Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { api, isNotFound, type ResponseOf } from '../api/client';
import { CopyableId } from '../display/copyable';
import { ErrorAlert } from '../display/error-alert';
import { ErrorCode } from '../display/error-code';
import { RelativeTime } from '../figures/figure';
import { count } from '../figures/numbers';
import { type Column, DataTable } from '../table/data-table';
import { useUrlState } from '../url/url-state';

type Refusal = ResponseOf<'/admin/v1/refusals', 'get'>['data'][number];

const MOST = 10;

/** How many requests the gateway rejected, and on demand why: they are in no list of calls. Nothing if there are none. */
export function Rejected({ team, gatewayKey, ...range }: Props) {
  const [url, setUrl] = useUrlState();
  const query = { ...range, team, key: gatewayKey, limit: MOST };
  const refusals = useQuery({
    queryKey: ['refusals', query],
    queryFn: ({ signal }) => api.get('/admin/v1/refusals', { query: query as never, signal }),
  });
  // The list beside it says so, too.
  if (isNotFound(refusals.error)) return null;
  if (refusals.error !== null)
    return <ErrorAlert error={refusals.error} retry={() => void refusals.refetch()} />;
  if (!refusals.data || refusals.data.calls === 0) return null;
  const { calls, data } = refusals.data;
  const isOpen = url.rejected === '1';
  return (
    <div>
      <Group gap="xs">
        <Text size="sm">
          {count(calls)} {calls === 1 ? 'request was' : 'requests were'} rejected by the gateway
          {range.from === undefined && ' in the last 24 hours'}, and not forwarded.
        </Text>
        <Button
          size="compact-xs"
          variant="default"
          aria-expanded={isOpen}
          onClick={() => setUrl({ rejected: isOpen ? undefined : '1' }, { replace: true })}
        >
          {isOpen ? 'Hide the reasons' : 'Show the reasons'}
        </Button>
      </Group>
      {isOpen && (
        <DataTable
          label={data.length === MOST ? `The ${MOST} most frequent reasons` : 'Rejected requests'}
          dense
          columns={COLUMNS}
          rows={data}
          rowId={({ key_id: id, code, limit_id: limit }) => `${id} ${code} ${limit}`}
          empty={null}
        />
      )}
    </div>
  );
}

interface Props {
  from?: string;
  to?: string;
  team?: string;
  gatewayKey?: string;
}

const COLUMNS: readonly Column<Refusal>[] = [
  {
    id: 'key',
    header: 'Team / key',
    cell: ({ team, key }) => (key == null ? 'No valid key' : team == null ? key : `${team} / ${key}`),
  },
  { id: 'code', header: 'Reason', cell: ({ code }) => code && <ErrorCode code={code} /> },
  { id: 'limit', header: 'Limit', cell: ({ limit }) => limit ?? '–' },
  { id: 'calls', header: 'Requests', align: 'right', cell: ({ calls }) => count(calls) },
  { id: 'last', header: 'Last', align: 'right', cell: ({ last_at: at }) => <RelativeTime at={at} /> },
  {
    id: 'id',
    header: 'ID of the last',
    cell: ({ last_request_id: id }) => <CopyableId id={id} what="request ID" short />,
  },
];

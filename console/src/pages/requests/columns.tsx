import { Text } from '@mantine/core';
import { CopyableId } from '../../display/copyable';
import { FullName } from '../../display/full-name';
import { ExactTime, Money } from '../../figures/figure';
import { bytes, count, duration } from '../../figures/numbers';
import type { Column } from '../../table/data-table';
import type { Call } from './call';
import { CallResult } from './call-result';
import { shortReason } from './reasons';

const tokens = (value: number | null) => (value === null ? '–' : count(value));
const text = (value: string | null) => value ?? '–';

/** A name in one line, whole on hover. */
function Name({ text: name, min }: { text: string | null; min?: string }) {
  return (
    <span className="truncated" style={{ minWidth: min }} title={name ?? undefined}>
      {text(name)}
    </span>
  );
}

/** Why it failed, in the words of the provider or of the gateway, below the result. */
function Reason({ call }: { call: Call }) {
  const reason = shortReason(call);
  if (reason === null) return null;
  return (
    <Text size="xs" c="dimmed" maw={170} truncate title={reason}>
      {reason}
    </Text>
  );
}

export const COLUMNS: readonly Column<Call>[] = [
  {
    id: 'started_at',
    header: 'Time',
    oneLine: true,
    cell: ({ started_at }) => <ExactTime at={started_at} seconds />,
  },
  {
    id: 'result',
    header: 'Result',
    oneLine: true,
    cell: (call) => (
      <>
        <CallResult call={call} />
        <Reason call={call} />
      </>
    ),
  },
  {
    id: 'caller',
    header: 'Team / key',
    oneLine: true,
    cell: ({ team, key }) => (
      <span className="truncated">
        {key === null ? text(team) : <FullName team={team ?? '?'} name={key} />}
      </span>
    ),
  },
  { id: 'team', header: 'Team', oneLine: true, cell: ({ team }) => <Name text={team} />, optional: true },
  { id: 'key', header: 'Key', oneLine: true, cell: ({ key }) => <Name text={key} />, optional: true },
  { id: 'error', header: 'Error', cell: (call) => text(shortReason(call)), optional: true },
  { id: 'provider', header: 'Provider', oneLine: true, cell: ({ provider }) => <Name text={provider} /> },
  // Models of one family differ at the end of their names.
  { id: 'model', header: 'Model', oneLine: true, cell: ({ model }) => <Name text={model} min="8rem" /> },
  { id: 'input', header: 'Input tokens', align: 'right', cell: ({ prompt_tokens }) => tokens(prompt_tokens) },
  {
    id: 'output',
    header: 'Output tokens',
    align: 'right',
    cell: ({ completion_tokens }) => tokens(completion_tokens),
  },
  {
    id: 'cached',
    header: 'Cached tokens',
    align: 'right',
    cell: ({ cached_tokens }) => tokens(cached_tokens),
    optional: true,
  },
  { id: 'cost', header: 'Cost', align: 'right', cell: ({ cost_usd }) => <Money usd={cost_usd} /> },
  {
    id: 'first_byte',
    header: 'First byte',
    align: 'right',
    cell: ({ ttfb_ms }) => duration(ttfb_ms),
    optional: true,
  },
  { id: 'duration', header: 'Duration', align: 'right', cell: ({ duration_ms }) => duration(duration_ms) },
  { id: 'path', header: 'Path', cell: ({ method, path }) => `${method} ${path ?? '–'}`, optional: true },
  { id: 'end_user', header: 'End user', cell: ({ end_user }) => text(end_user), optional: true },
  { id: 'subject', header: 'Subject', cell: ({ subject }) => text(subject), optional: true },
  { id: 'session', header: 'Session', cell: ({ session_id }) => text(session_id), optional: true },
  {
    id: 'request_bytes',
    header: 'Request body',
    align: 'right',
    cell: ({ request_bytes }) => bytes(request_bytes),
    optional: true,
  },
  {
    id: 'response_bytes',
    header: 'Response body',
    align: 'right',
    cell: ({ response_bytes }) => bytes(response_bytes),
    optional: true,
  },
  { id: 'client_ip', header: 'Client address', cell: ({ client_ip }) => text(client_ip), optional: true },
  {
    id: 'user_agent',
    header: 'User agent',
    cell: ({ user_agent }) => (
      <Text size="sm" lineClamp={1} maw={220} title={user_agent ?? undefined}>
        {text(user_agent)}
      </Text>
    ),
    optional: true,
  },
  {
    id: 'id',
    header: 'ID',
    cell: ({ id }) => <CopyableId id={id} what="request ID" short />,
    optional: true,
  },
];

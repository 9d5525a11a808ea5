import { Stack } from '@mantine/core';
import { DateTimePicker } from '@mantine/dates';
import '@mantine/dates/styles.css';
import { useQuery } from '@tanstack/react-query';
import { api } from '../../api/client';
import { ErrorAlert } from '../../display/error-alert';
import { Facts } from '../../display/facts';
import { LoadingRows } from '../../display/loading';
import { ExactTime } from '../../figures/figure';

/** What the team lets a member have: which life, budget and number of keys, with dates. The expiry is theirs to choose. */
export function OwnKeyFields({
  team,
  expiresAt,
  onChange,
  error,
}: {
  team: string;
  expiresAt: string | null;
  onChange: (at: string | null) => void;
  error: string | undefined;
}) {
  const { data, error: failed } = useQuery({
    queryKey: ['keys', 'allowance', team],
    queryFn: ({ signal }) => api.get('/admin/v1/keys/allowance', { query: { team }, signal }),
  });
  if (data === undefined) return failed === null ? <LoadingRows rows={3} /> : <ErrorAlert error={failed} />;
  const { keys, keys_per_user, counted_since, max_days, latest_expiry, providers } = data;
  const { budget_usd_per_month: budget, budget_resets_at: next, sign_in_within_days: within } = data;
  return (
    <Stack gap="sm">
      <Facts
        facts={[
          ['Your keys', `${keys} of ${keys_per_user}${keys >= keys_per_user ? ': none is left' : ''}`],
          [
            'Counted',
            counted_since === null ? (
              'keys that work'
            ) : (
              <>
                keys that work, and those that ended since <ExactTime at={counted_since} />
              </>
            ),
          ],
          [
            'Expires',
            <>
              <ExactTime at={latest_expiry} /> at the latest, {max_days} days from now
            </>,
          ],
          [
            'Needs a sign-in',
            within === null
              ? undefined
              : `every ${within} days: without one it stops until you sign in again`,
          ],
          [
            'Budget',
            budget === null || next === null ? (
              'none of its own; those of the team apply'
            ) : (
              <>
                ${budget} a month; the next month begins <ExactTime at={next} />
              </>
            ),
          ],
          ['Providers', providers === null ? 'all' : providers.join(', ')],
        ]}
      />
      <DateTimePicker
        label="Expires earlier"
        placeholder="As late as the team allows"
        clearable
        clearButtonProps={{ 'aria-label': 'As late as the team allows' }}
        valueFormat="MMM D, YYYY HH:mm"
        minDate={new Date()}
        maxDate={new Date(latest_expiry)}
        value={expiresAt === null ? null : new Date(expiresAt)}
        onChange={(value) => onChange(value === null ? null : new Date(value).toISOString())}
        error={error}
      />
    </Stack>
  );
}

import { RelativeTime } from '../figures/figure';

/** Up to when the sums of a page have all calls. */
export function CompleteUpTo({ asOf, error }: { asOf: string | undefined; error: unknown }) {
  if (asOf === undefined) return <>{error ? 'The sums could not be loaded' : 'Counting calls …'}</>;
  return (
    <>
      Complete up to <RelativeTime at={asOf} />
    </>
  );
}

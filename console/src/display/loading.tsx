import { Skeleton, Stack } from '@mantine/core';

/** Placeholders of the height that the content will have, so that nothing moves when it arrives. */
export function LoadingRows({
  rows = 6,
  height = 36,
  label = 'Loading',
}: {
  rows?: number;
  height?: number;
  label?: string;
}) {
  return (
    <Stack gap={8} role="status" aria-label={label} aria-busy="true">
      {Array.from({ length: rows }, (_, index) => (
        <Skeleton key={index} height={height} radius="sm" />
      ))}
    </Stack>
  );
}

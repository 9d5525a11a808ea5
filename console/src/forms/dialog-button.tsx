import { Button, type ButtonProps } from '@mantine/core';
import { type ReactNode, useState } from 'react';

/** A button of a drawer, and the dialog that it opens. */
export function DialogButton({
  label,
  children,
  ...button
}: Omit<ButtonProps, 'children'> & { label: string; children: (close: () => void) => ReactNode }) {
  const [opened, setOpened] = useState(false);
  return (
    <>
      <Button size="xs" {...button} onClick={() => setOpened(true)}>
        {label}
      </Button>
      {opened && children(() => setOpened(false))}
    </>
  );
}

import { Button, type ButtonProps } from '@mantine/core';
import { type ReactNode, useState } from 'react';

/** A button of a drawer, and the dialog that it opens. @param opened is it open at first? */
export function DialogButton({
  label,
  opened: isOpenAtFirst = false,
  children,
  ...button
}: Omit<ButtonProps, 'children'> & {
  label: string;
  opened?: boolean;
  children: (close: () => void) => ReactNode;
}) {
  const [opened, setOpened] = useState(isOpenAtFirst);
  return (
    <>
      <Button size="xs" {...button} onClick={() => setOpened(true)}>
        {label}
      </Button>
      {opened && children(() => setOpened(false))}
    </>
  );
}

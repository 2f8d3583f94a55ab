/** Let the browser save a blob under a name. */
export function download(blob: Blob, name: string): void {
  const url = URL.createObjectURL(blob);
  const link = document.createElement('a');
  link.href = url;
  link.download = name;
  link.click();
  // The click starts the download at once; the address is not needed after this turn.
  setTimeout(() => URL.revokeObjectURL(url), 0);
}

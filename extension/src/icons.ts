import { LabIcon } from '@jupyterlab/ui-components';

import svgstr from '../style/harness.svg';

/** A harness ring with three straps; shapes carry `jp-icon3`, so themes recolour it. */
export const labIcon = new LabIcon({ name: 'harnesslab:lab', svgstr });

import { render } from 'preact';
import { App } from './app.tsx';
import { language } from './i18n/index.ts';
import { restoreTheme } from './theme.ts';
import './style/base.css';
import './style/app.css';

document.documentElement.lang = language();
const root = document.getElementById('app');
const draw = () => root && render(<App />, root);
restoreTheme(draw);
draw();

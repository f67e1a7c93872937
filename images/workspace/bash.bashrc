# For every interactive shell, before ~/.bashrc.
case $- in *i*) ;; *) return ;; esac

shopt -s checkwinsize histappend
HISTCONTROL=ignoreboth
HISTSIZE=10000
HISTFILESIZE=20000

. /usr/share/bash-completion/bash_completion
. /usr/lib/git-core/git-sh-prompt
PS1='\[\e[1;32m\]\w\[\e[0;36m\]$(__git_ps1 " %s")\[\e[0m\] \$ '

alias ls='ls --color=auto'
alias ll='ls -l'
alias grep='grep --color=auto'
